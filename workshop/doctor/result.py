"""The outcome of one check."""

from __future__ import annotations

from dataclasses import dataclass

OK, WARN, FAIL = "OK", "WARN", "FAIL"


@dataclass(frozen=True)
class Check:
    """level: OK, WARN (a part of the kit is missing) or FAIL (it will not work).

    found: what is here. do: what to do about it, empty where there is nothing to do.
    """

    level: str
    found: str
    do: str = ""


def ok(found: str) -> Check:
    return Check(OK, found)


def warn(found: str, do: str) -> Check:
    return Check(WARN, found, do)


def fail(found: str, do: str) -> Check:
    return Check(FAIL, found, do)
