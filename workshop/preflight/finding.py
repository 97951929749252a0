"""What a check found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from workshop.preflight import facts


@dataclass(frozen=True)
class Finding:
    """One result.

    what: the thing looked at, one word or two. ok: True; False if the job must not be sent so;
    None if it could not be checked. reason: what was found, a sentence. remedy: what to do;
    empty if ok. source: where the fact stands, with the day on which it was read; empty if the
    finding is about the configuration alone.
    """

    what: str
    ok: bool | None
    reason: str
    remedy: str = ""
    source: str = ""


def bad(what: str, reason: str, remedy: str, source: str = "") -> Finding:
    """Something that does not go together. source: a name under [sources] of facts.toml."""
    return Finding(what, False, reason, remedy, facts.source(source) if source else "")


def unknown(what: str, reason: str, remedy: str = "") -> Finding:
    """Something that could not be checked."""
    return Finding(what, None, f"Could not be checked: {reason}", remedy)


def all_ok(findings: Iterable[Finding]) -> bool:
    """Whether nothing was found that does not go together."""
    return all(one.ok is not False for one in findings)
