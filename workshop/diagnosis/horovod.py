"""What Horovod says of tensors that not all ranks have submitted: its stall check, its timeline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from workshop.diagnosis.evidence import Evidence, Rank

Stalled = tuple[str, list[int]]  # the tensor, and the ranks that do not submit it

PREFIX = re.compile(r"(?m)^\[[^\]\n]*stall_inspector\.cc:\d+\] ?")
PATIENCE = 3.0  # s that a negotiation may take in a healthy training
BEGIN = "tensors were submitted to be reduced"


def stalled(evidence: Evidence) -> list[Stalled]:
    """What is stalled, as the log says, else as the timeline does, if there is one."""
    return [*_in_log(evidence.text)] or [*_in_timeline(evidence)]


def _in_log(text: str) -> Iterator[Stalled]:
    """HOROVOD_STALL_CHECK_TIME_SECONDS (60) after the first rank came, the coordinator says it."""
    begin = text.find(BEGIN)
    if begin < 0:
        return
    part = PREFIX.sub("", text[begin:])
    stalls = re.findall(r"(?m)^\s*(\d+): \[([^\]\n]+)\]", part)
    yield from ((tensors, [int(rank)]) for rank, tensors in stalls)
    for tensor, ranks in re.findall(r"(\S+) ?\[missing ranks: ([\d, ]+)\]", part):  # older ones
        yield tensor, [int(rank) for rank in ranks.split(",")]
    if not stalls and "missing ranks" not in part:
        yield "a tensor", []


def _in_timeline(evidence: Evidence) -> Iterator[Stalled]:
    """HOROVOD_TIMELINE's file: tensors that have been negotiated for long, and who has come."""
    for rank in evidence.ranks:
        path = Path(rank.note.get("variables", {}).get("HOROVOD_TIMELINE", ""))
        if not path.is_file():
            continue
        for tensor, began, came in _negotiations(path.read_text(errors="replace")):
            # Of a tensor that it knows Horovod does not note who has come.
            there = came or {r.number for r in evidence.ranks if _is_in_horovod(r)}
            missing = sorted({rank.number for rank in evidence.ranks} - there)
            if rank.note["time"] - began > PATIENCE and missing:
                yield tensor, missing
        return


def _is_in_horovod(rank: Rank) -> bool:
    return any("/horovod/" in place[0] for place in rank.stack)


def _negotiations(text: str) -> Iterator[tuple[str, float, set[int]]]:
    """Of the tensors that wait for ranks: the name, since when (Unix seconds), who has come."""
    start, names = 0.0, {}
    waiting: dict[int, tuple[float, set[int]]] = {}
    # While it is written the array has no end, and its last entry may be half one.
    for row in re.findall(r'\{"(?:[^{}]|\{[^{}]*\})*\}', text):
        try:
            event = json.loads(row)
        except ValueError:
            continue
        pid, kind, name = event.get("pid"), event.get("ph"), event.get("name", "")
        arguments = event.get("args", {})
        if kind == "M" and name == "process_name":
            start = arguments.get("start_time_since_epoch_in_micros", start)
            names[pid] = arguments.get("name", "")
        elif kind == "B" and name.startswith("NEGOTIATE_"):
            waiting[pid] = (event["ts"], set())
        elif kind == "X" and name.isdigit() and pid in waiting:
            waiting[pid][1].add(int(name))
        elif kind == "E":
            waiting.pop(pid, None)
    for pid, (began, came) in waiting.items():
        yield names.get(pid, "a tensor"), (start + began) / 1e6, came
