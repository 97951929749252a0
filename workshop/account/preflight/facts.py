"""What is known about AWS without asking it (facts.toml), and a finding."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FACTS = Path(__file__).with_name("facts.toml")


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    topic: the part of the job, one word or two. ok: True; False if the job must not be sent so;
    None if it could not be checked. reason: a sentence. remedy: what to do; empty if ok. source:
    where the fact is documented, with the day on which it was read; empty if the finding is about
    the configuration alone.
    """

    topic: str
    ok: bool | None
    reason: str
    remedy: str = ""
    source: str = ""


def bad(topic: str, reason: str, remedy: str, source_name: str = "") -> Finding:
    """Something that does not go together. source_name: under [sources] of facts.toml."""
    return Finding(topic, False, reason, remedy, source(source_name) if source_name else "")


def unknown(topic: str, reason: str, remedy: str = "") -> Finding:
    """Something that could not be checked."""
    return Finding(topic, None, f"Could not be checked: {reason}", remedy)


def all_ok(findings: Iterable[Finding]) -> bool:
    """Whether no finding is against the job."""
    return all(finding.ok is not False for finding in findings)


@cache
def facts() -> dict[str, Any]:
    """facts.toml as it is."""
    return tomllib.loads(FACTS.read_text(encoding="utf-8"))


def source(name: str) -> str:
    """Where a fact is documented, and the day on which it was read there."""
    row = facts()["sources"][name]
    return f"{row['address']} (read {row['read']})"
