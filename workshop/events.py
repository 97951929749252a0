"""The records that scripts print, one JSON object a line: {"event": "epoch", "epoch": 1, ...}."""

from __future__ import annotations

import json
from collections.abc import Iterable


def event(text: str) -> dict | None:
    """The record in a line, or None where the line is none."""
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "event" in found else None


def events(lines: Iterable[str], kind: str) -> list[dict]:
    """The records of one kind among these lines, in their order."""
    found = filter(None, map(event, lines))
    return [one for one in found if one["event"] == kind]
