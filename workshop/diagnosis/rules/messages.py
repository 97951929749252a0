"""Ranks that wait for what nobody records: sends and receives, and Horovod's calls.

Their stacks show it: they stay at one line, in a call of a library that sends.
"""

from __future__ import annotations

import linecache

from workshop.diagnosis.evidence import Evidence, Rank, show_place
from workshop.diagnosis.rules.collectives import (
    BRANCH,
    ELSEWHERE,
    LEAVE_TOGETHER,
    LEFT_EARLY,
    ORDER,
    OTHER_CALL,
    OTHER_ORDER,
    PATIENCE_SECONDS,
    READ_BOTH,
    branch_of,
)
from workshop.diagnosis.rules.rule import Cases, Finding, rule
from workshop.diagnosis.source import break_between

SENDS, RECEIVES = {"send", "isend"}, {"recv", "irecv"}
LIBRARIES = ("/torch/distributed/", "/horovod/")
PAIRS = (
    "Let one of two ranks send first and the other receive first (even and odd ranks), or use "
    "batch_isend_irecv. For each recv look for the send with its dst and tag."
)


@rule()
def unrecorded_wait(evidence: Evidence) -> Cases:
    """All ranks stay in sends, receives or Horovod's calls, or wait there for another; or did so
    until they were killed."""
    waits = {rank.number: call for rank in evidence.ranks if (call := waited_in(rank))}
    there = [rank for rank in evidence.ranks if rank.number in waits]
    if not there:
        return
    seconds = min(rank.note["time"] - rank.note["since"] for rank in there)
    if seconds < PATIENCE_SECONDS:
        return
    where = "; ".join(
        f"rank {rank.number} waits in {waits[rank.number]} at {show_place(rank.place)}"
        for rank in there[:4]
    )
    others = [rank for rank in evidence.ranks if rank.number not in waits]
    if others:
        other = others[0]
        ended = other.end.get("how") == "exit"
        is_at = "has ended" if ended else f"is at {show_place(other.place)}"
        reason = f"the wait has lasted {seconds:.0f} s, and rank {other.number} {is_at}"
        if branch := branch_of(*(rank.stack for rank in there), others=other.stack):
            yield Finding(OTHER_CALL, where, f"{reason}: {branch}", BRANCH)
        elif place := break_between(there[0].stack, other.stack):
            reason += f": one has left the loop, which it may by the `if` at {show_place(place)}"
            yield Finding(LEFT_EARLY, where, reason, LEAVE_TOGETHER)
        else:
            cause = LEFT_EARLY if ended else ELSEWHERE
            sends = set(waits.values()) & (SENDS | RECEIVES)
            remedy = PAIRS if sends else READ_BOTH.format(evidence.timeout)
            yield Finding(cause, where, reason, remedy)
        return
    calls, places = set(waits.values()), {rank.place for rank in there}
    if calls <= RECEIVES:
        reason = "all wait to receive, and nobody sends"
    elif calls <= SENDS:
        reason = "all send first: a send of much data returns once its receiver is there"
    elif calls & (SENDS | RECEIVES):
        reason = "each waits for a message that the other does not send or take just then"
    elif len(places) > 1:
        apart = next(rank for rank in there if rank.place != there[0].place)
        if branch := branch_of(*(rank.stack for rank in there)):
            yield Finding(OTHER_CALL, where, branch, BRANCH)
        elif place := break_between(there[0].stack, apart.stack):
            reason = f"one has left the loop, which it may by the `if` at {show_place(place)}"
            yield Finding(LEFT_EARLY, where, reason, LEAVE_TOGETHER)
        else:
            yield Finding(OTHER_ORDER, where, "they wait in different calls", ORDER)
        return
    else:
        return  # all in one call: it may just be long
    yield Finding("sends and receives do not match", where, reason, PAIRS)


def waited_in(rank: Rank) -> str:
    """The call in which a rank waits for others, or did when it was killed, such as recv; "" if it
    isn't recorded that it does, or if it waits in a collective that is recorded."""
    if rank.end or rank.pending or "since" not in rank.note:
        return ""
    inner = rank.library_calls
    library = [place for place in inner if any(part in place[0] for part in LIBRARIES)]
    # Outermost first: what the script called. torch wraps its functions, to log them.
    names = [name for file, _, name in reversed(library) if "c10d_logger" not in file]
    if names:
        return "" if names[0] == "<module>" else names[0]  # that is an import
    line = linecache.getline(*rank.place[:2])
    return "wait" if not inner and ".wait(" in line else ""
