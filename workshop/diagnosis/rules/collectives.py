"""Calls that differ among the ranks, and ranks that did not come."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence

from workshop.diagnosis.collectives import Mismatch, Waiting, calls_of_line, first_mismatch, waiting
from workshop.diagnosis.evidence import Evidence, Place, Rank, is_script, name_ranks, show_place
from workshop.diagnosis.rules.rule import Cases, Finding, rule
from workshop.diagnosis.source import (
    branch_apart,
    branch_on_rank,
    break_between,
    continues_before,
    in_for_loop,
    lines_with,
    loops_around,
    try_that_goes_on,
)

OTHER_CALL, OTHER_ORDER = "one rank makes another call", "the ranks call in different orders"
OTHER_SIZE, NO_GROUP = "the tensors differ in size or type", "not all ranks made the group"
TOO_LATE = "a rank came too late"
LEFT_EARLY, ELSEWHERE = "one rank ended early", "one rank does something else"
LOCKED = "one rank waits for a lock"

MEET_SECONDS = 15.0  # that ranks may take to start, and to meet
TOGETHER_SECONDS = 10.0  # that a large exchange may take
STUCK_SECONDS = 3.0  # without a new collective: a job that runs is not judged before
PATIENCE_SECONDS = 10.0  # with a rank that does something of its own, such as to evaluate
LOADER_SECONDS = 20.0  # that the first batch may take, with workers that are started anew
FILE_LOCKS = r"/(filelock|portalocker|fasteners)/|\b(flock|lockf)\("
MAKES_A_GROUP = r"\bnew_(sub)?group\w*\("
GAVE_UP = r"Timed out waiting (\d+) ?ms"
MOVED_SECONDS = 2.0  # a rank that was at another line since then works

UNEVEN = (
    "Give all ranks equally many batches (DistributedSampler; drop_last=True), let all skip a "
    "batch or none; if DDP alone exchanges, `with model.join():` helps, too."
)
BRANCH = "Call the same collectives on all ranks, outside of `if rank == 0`."
BY_DATA = (
    "Let all ranks decide together, by an all_reduce of the condition: the branch or loop that "
    "leads there depends on a rank's data (a loss that is not finite, an empty batch)."
)
LEAVE_TOGETHER = (
    "Let all ranks leave together: the same number of steps, one decision to stop (broadcast it), "
    "and a barrier before the end."
)
LONGER = (
    "Give init_process_group a timeout longer than that work takes; or do the work before it, in a "
    "job of its own, or divide it among the ranks."
)
AGREE = "Decide on one rank and broadcast, or all_reduce the value that the `if` looks at."
ORDER = "Sort what you loop over, by name for example, so that all ranks call in one order."
READ_BOTH = "Read both lines: what does each rank wait for? Let a hang end with an error: {}."
THREAD = (
    "See why the thread that should answer has ended, or waits, too: an error in it may have been "
    "swallowed. Let it hand its errors over, and wait with a timeout."
)
SKIPPED = (
    "Look for an error that it swallowed. Let all ranks skip a step or none: after the `try`, "
    "all_reduce whether any rank failed; or let the error end the job."
)
NEW_GROUP = (
    "Let every rank call new_group for every group, also one that it will not be in, in one order: "
    "at the start, not where a group is first used."
)
UNLOCK = (
    "Call no collective while holding a lock: the ranks that wait for the lock cannot come to it. "
    "Leave the lock's block before the barrier, or let rank 0 alone do what the lock guards."
)
WORKER = (
    "Look at its data workers: a lock, a network file, a dead process. Set timeout= in the "
    "DataLoader."
)
TIMEOUT = (
    "Give that call a timeout and handle its error, or make it in a thread: all ranks wait for it."
)
SIZES = (
    "Pass equally many numbers of one type on all ranks: pad the tensors, or exchange their sizes "
    "first (all_gather_object); convert them to one dtype."
)


@rule("uneven batches", UNEVEN)
def uneven(evidence: Evidence) -> Cases:
    """A rank has left the loop, and its next call meets the others' gradients."""
    mismatch = first_mismatch(evidence)
    of_line = calls_of_line(evidence, mismatch) if mismatch else None
    if not mismatch or not of_line or _branch(mismatch) or _apart(mismatch):
        return
    if place := break_between(mismatch.first[1].stack, mismatch.second[1].stack):
        rank = min(of_line[0], key=of_line[0].__getitem__)
        reason = f"rank {rank} has left the loop, which it may by the `if` at {show_place(place)}"
        yield Finding(LEFT_EARLY, _pair(mismatch), reason, LEAVE_TOGETHER)
    elif not _in_one_loop(mismatch, of_line[0]):
        yield _pair(mismatch), f"{_times(*of_line)}: one rank {behind(of_line[1])}"


def behind(place: Place) -> str:
    """What a rank may have done that has called a line in a loop fewer times than another."""
    if skips := continues_before(place):
        return f"may have skipped a batch by the `continue`{skips}, or has fewer batches"
    return "has fewer batches, skipped some, or left the loop early"


def _times(counts: dict[int, int], place: Place) -> str:
    few, most = min(counts, key=counts.__getitem__), max(counts, key=counts.__getitem__)
    times = f"{counts[few]} times and rank {most} {counts[most]} times"
    return f"rank {few} made the call at {show_place(place)} {times}"


def _in_one_loop(mismatch: Mismatch, counts: dict[int, int]) -> bool:
    """Whether the rank behind is in the other's loops, or trains on around an inner one of them."""
    sides = sorted((mismatch.first, mismatch.second), key=lambda side: counts[side[0].number])
    behind, ahead = (loops_around(call.stack) or set() for _, call in sides)
    if sides[0][1].in_backward and behind and sides[0][1].place != sides[1][1].place:
        return behind <= ahead or (ahead <= behind and mismatch.kind == "operation")
    return bool(ahead) and ahead <= behind and mismatch.kind == "operation"


@rule()
def mismatched(evidence: Evidence) -> Cases:
    """The first calls with the same number that differ."""
    mismatch = first_mismatch(evidence)
    if mismatch is None:
        return
    pair, of_line = _pair(mismatch), calls_of_line(evidence, mismatch)
    if branch := _branch(mismatch):
        yield Finding(OTHER_CALL, pair, branch, BRANCH)
    elif apart := _apart(mismatch):
        yield Finding(OTHER_CALL, pair, apart, AGREE)
    elif mismatch.kind == "operation" or (of_line and _in_one_loop(mismatch, of_line[0])):
        times = f"{_times(*of_line)}: " if of_line else ""
        reason = f"{times}what leads there, a loop or an `if`, differs among the ranks"
        made = lines_with((mismatch.first[1], mismatch.second[1]), MAKES_A_GROUP)
        ask = f"If one of the calls is meant for the group of {made}, pass it as group=. "
        yield Finding(OTHER_CALL, pair, reason, (ask if made else "") + BY_DATA)
    elif mismatch.kind == "order":
        reason = "they call the same collectives in another order, as from a set or by arrival"
        yield Finding(OTHER_ORDER, pair, reason, ORDER)
    else:
        yield Finding(OTHER_SIZE, pair, f"their tensors differ in {mismatch.kind}", SIZES)


def _apart(mismatch: Mismatch) -> str:
    """A sentence with the `if` in one loop that one of two ranks took and the other did not."""
    sides = (mismatch.first, mismatch.second)
    for (rank, call), (_, other) in (sides, sides[::-1]):
        if place := branch_apart(call.stack, other.stack):
            return (
                f"rank {rank.number} took the `if` at {show_place(place)} and the other did not: "
                "its condition has another value there"
            )
    return ""


def _branch(mismatch: Mismatch) -> str:
    return branch_of(*(call.stack for _, call in (mismatch.first, mismatch.second)))


def branch_of(*stacks: Sequence[Place], others: Sequence[Place] = ()) -> str:
    """A sentence with the `if` about the rank that is around a call of some of them; or "".

    others: where a rank is that makes no such call.
    """
    branches = []
    for stack in stacks:
        elsewhere = [place for other in (*stacks, others) if other != stack for place in other]
        branches.append(branch_on_rank(stack, others, elsewhere))
    place = next(filter(None, branches), None)
    return f"only some ranks call it: see the `if` at {show_place(place)}" if place else ""


def _pair(mismatch: Mismatch) -> str:
    (first, call), (second, other) = mismatch.first, mismatch.second
    return (
        f"rank {first.number} calls {call} at {show_place(call.place)}, rank {second.number} "
        f"{other} at {show_place(other.place)}"
    )


@rule()
def somebody_missing(evidence: Evidence) -> Cases:
    """Ranks wait in a collective that another has not called."""
    hang = hang_of(evidence)
    why = _missing_reason(hang.missing[0], hang, evidence) if hang else None
    if hang and why:
        waits = f"{name_ranks(hang.ranks)} {'waits' if len(hang.ranks) == 1 else 'wait'}"
        where = f"{waits} in {hang.collective} at {show_place(hang.collective.place)}"
        yield Finding(why[0], where, *why[1:])


@rule(LEFT_EARLY, LEAVE_TOGETHER)
def left_alone(evidence: Evidence) -> Cases:
    """A rank has ended, and one stays in backward, where it cannot even note what it calls."""
    stuck = [r for r in evidence.ranks if r.silent and "/torch/autograd/" in str(r.stack)]
    if evidence.gone and stuck and not hang_of(evidence):
        where = f"{stuck[0].name} waits in backward at {show_place(stuck[0].place)}"
        yield where, f"{evidence.gone[0].name} has not called it: it has ended"


def _missing_reason(rank: Rank, hang: Waiting, evidence: Evidence) -> tuple[str, str, str] | None:
    """Cause, reason and remedy, of a rank for which others wait; None if it just works on."""
    call, left = hang.collective, rank.end.get("how") == "exit"
    known = rank.alive or rank.end or rank.pending
    place = f"it {'is' if known else 'was last seen'} at {show_place(rank.place)}"
    reason = f"rank {rank.number} has not called it: {'it has ended' if left else place}"
    other = next((c for c in rank.pending if c.group != call.group), None)
    if seconds := _worked_past(rank, hang):
        reason = f"{reason}, where it worked on, and the others gave up after {seconds} s"
        return TOO_LATE, reason, LONGER
    if branch := branch_of(call.stack, others=rank.stack if rank.alive else ()):
        return OTHER_CALL, f"{reason}, and {branch}", BRANCH
    if _is_making_a_group(rank):
        return NO_GROUP, f"{reason}, and makes a group or waits for one", NEW_GROUP
    if _never_calls(rank, hang):
        return OTHER_CALL, f"{reason}, and never called that line", BY_DATA
    if other and other.seq == 1 < call.seq:
        made = lines_with(rank.collectives, MAKES_A_GROUP)
        reason += f", in {other}, its first call of group {other.group}: not all ranks called "
        reason += f"new_group{f' (at {made})' if made else ''} for the same groups in one order"
        return NO_GROUP, reason, NEW_GROUP
    if other:
        reason += (
            f", in {other} of group {other.group}, and the others in one of group {call.group}"
        )
        return OTHER_ORDER, reason, ORDER
    if left:
        return LEFT_EARLY, reason, LEAVE_TOGETHER
    if any(name in ("pid", "_try_get_data") for _, _, name in rank.stack[:8]):
        return "one rank waits for data", f"{reason}, waiting for a data worker", WORKER
    young = evidence.running and seconds_since_a_call(evidence) <= PATIENCE_SECONDS
    if young or any(is_busy(other) for other in hang.missing):
        return None  # who is busy may have what this rank waits for
    if _waits_for_a_lock(rank):
        return LOCKED, f"{reason}, where it waits for a lock that another rank holds", UNLOCK
    if called := _waits_in(rank, "/socket.py", "/ssl.py", "/connection.py"):
        return "one rank waits for the network", f"{reason}, in {called}", TIMEOUT
    if called := _waits_in(rank, "/queue.py", "/threading.py"):
        reason += f", in {called}, for another thread{_other_threads(rank)}"
        return "one rank waits for a thread", reason, THREAD
    if guard := try_that_goes_on(call.stack):
        its_calls, calls = (
            sum(c.place == call.place for c in r.collectives) for r in (rank, hang.ranks[0])
        )
        reason += (
            f". It made that call {its_calls} times and the others {calls} times: an error in the "
        )
        reason += f"`try` at {show_place(guard)}, after which it goes on, may have left one out"
    return ELSEWHERE, reason, SKIPPED if guard else READ_BOTH.format(evidence.timeout)


def _worked_past(rank: Rank, hang: Waiting) -> str:
    """The others' timeout in seconds, if all gave up while this rank was seen to work; or ""."""
    limits = [re.search(GAVE_UP, other.end.get("message", "")) for other in hang.ranks]
    limit = limits[0]
    if limit is None or None in limits or rank.end or rank.pending or "since" not in rank.note:
        return ""
    seconds = int(limit[1]) / 1000
    seen = rank.samples(rank.note["time"] - seconds)
    worked = sum(count for (activity, *_), count in seen.items() if activity != "communication")
    moves = rank.note["time"] - rank.note["since"] < min(MOVED_SECONDS, seconds)
    return f"{seconds:g}" if moves and worked > seen.total() / 2 and not _polls(rank) else ""


def hang_of(evidence: Evidence) -> Waiting | None:
    """Who waits for whom, unless they may only have begun to."""
    hang = waiting(evidence)
    runs = hang and evidence.running and not any(rank.gave_up for rank in hang.ranks)
    young = runs and seconds_since_a_call(evidence) < STUCK_SECONDS
    return None if young else hang


def is_busy(rank: Rank) -> bool:
    """Whether a rank that runs works on: it has moved since a moment ago, or is in a `for`."""
    if not rank.alive or rank.silent or "since" not in rank.note or _polls(rank):
        return False
    moves = rank.note["time"] - rank.note["since"] < MOVED_SECONDS
    in_library = bool(rank.stack) and not is_script(rank.stack[0])
    return moves or (not in_library and in_for_loop(rank.place))


def _polls(rank: Rank) -> bool:
    """Whether it mostly sleeps, and not in a `for`: it waits for something that does not come.

    So does a library that sleeps now, if the script's line has called it all the time.
    """
    seen = rank.samples(rank.note["time"] - PATIENCE_SECONDS)
    asleep = sum(count for (_, *place), count in seen.items() if _sleeps(tuple(place)))
    if rank.library_calls and _sleeps(rank.library_calls[0]):
        asleep += sum(count for (_, *place), count in seen.items() if tuple(place) == rank.place)
    return asleep > seen.total() / 2


def _sleeps(place: Place) -> bool:
    return "sleep(" in linecache.getline(*place[:2]) and not in_for_loop(place)


def _waits_for_a_lock(rank: Rank) -> bool:
    """Whether it is in a library of file locks, or at a line that takes one."""
    inner = rank.stack[: len(rank.library_calls) + 1]
    lines = [linecache.getline(file, line) for file, line, _ in inner[:1]]
    return any(re.search(FILE_LOCKS, text) for text in [*(file for file, *_ in inner), *lines])


def _other_threads(rank: Rank) -> str:
    """Of a rank's other threads of Python, what is known."""
    if "other_threads" not in rank.note:
        return ""
    threads = [
        f"{name} is at {show_place((*place,))}" for name, *place in rank.note["other_threads"]
    ]
    return f": {'; '.join(threads) or 'but none works there any more'}"


def _waits_in(rank: Rank, *files: str) -> str:
    """What the script called, if a rank stays in it, and in one of Python's own files; or ""."""
    inner = rank.library_calls
    return inner[-1][2] if inner and inner[0][0].endswith(files) else ""


def _never_calls(rank: Rank, hang: Waiting) -> bool:
    """Whether the others call this line again and again, and this rank has ended without it."""
    place = hang.collective.place
    calls = [call for other in hang.ranks for call in other.collectives if call.place == place]
    own_places = {call.place for call in rank.collectives}
    ended = rank.end.get("how") == "exit"
    return ended and bool(place[0] and own_places) and len(calls) > 1 and place not in own_places


@rule(
    "all wait in one call",
    "Compare what each rank passes: a broadcast or gather has one root (src, dst) on all ranks. "
    "If that is so, no data flow: look at the network, and with NCCL set NCCL_DEBUG=INFO.",
)
def all_in_one_call(evidence: Evidence) -> Cases:
    """All ranks are in the same collective, and for long none has left it."""
    pending = [rank.pending[0] for rank in evidence.ranks if rank.pending]
    if (
        len(pending) < max(evidence.world_size, 2)
        or len({(c.group, c.seq, c.op) for c in pending}) > 1
    ):
        return
    failed = not evidence.running and any(evidence.statuses)
    last_note = max(rank.note["time"] for rank in evidence.ranks)
    if failed or (
        evidence.running and last_note - max(c.created for c in pending) > TOGETHER_SECONDS
    ):
        place = show_place(pending[0].place)
        where = f"all ranks wait in {pending[0]} at {place}"
        yield where, "all have called it, and none has left it"


@rule("no batch comes", WORKER + " A lock that a thread held as a worker was forked stays locked.")
def no_batch(evidence: Evidence) -> Cases:
    """All ranks stay in their loaders: no collective waits, so nothing else shows that hang."""
    seconds = min((_seconds_here(rank) for rank in evidence.ranks), default=0.0)
    in_loaders = all(
        any("/torch/utils/data/" in file for file, *_ in rank.library_calls)
        for rank in evidence.ranks
    )
    if evidence.running and seconds > LOADER_SECONDS and in_loaders:
        places = {show_place(rank.place) for rank in evidence.ranks}
        where = f"{name_ranks(evidence.ranks)} wait for a batch at {', '.join(sorted(places))}"
        yield where, f"for {seconds:.0f} s: no worker hands one over, or it takes so long"


@rule(
    "rendezvous",
    "Compare WORLD_SIZE, MASTER_ADDR and MASTER_PORT of all ranks; start as many as WORLD_SIZE "
    "says, each with another RANK; on several instances open the ports between them.",
)
def never_met(evidence: Evidence) -> Cases:
    """Ranks wait where they meet, and not all have come."""
    waits = [rank for rank in evidence.ranks if _names(rank) & {"init_process_group", "rendezvous"}]
    there, called = len(evidence.ranks), any(rank.collectives for rank in evidence.ranks)
    if not waits or called:
        return
    rank = waits[0]
    where = f"rank {rank.number} waits at {show_place(rank.place)}"
    address = f"{_variable(rank, 'MASTER_ADDR')}:{_variable(rank, 'MASTER_PORT')}"
    if there < evidence.world_size or not evidence.running:
        yield where, f"{there} of {evidence.world_size} ranks have come to {address}"
    elif len(waits) == there and all(_seconds_here(rank) > MEET_SECONDS for rank in waits):
        yield (
            where,
            f"all {there} ranks that were started wait for {_seconds_here(rank):.0f} s at "
            f"{address}: they expect more ranks than these, or meet at different addresses",
        )


@rule(NO_GROUP, NEW_GROUP)
def group_not_made(evidence: Evidence) -> Cases:
    """A rank waits in new_group, and another is elsewhere."""
    makers = [rank for rank in evidence.ranks if _is_making_a_group(rank)]
    if makers and len(makers) < len(evidence.ranks):
        others = [rank for rank in evidence.ranks if rank not in makers]
        yield (
            f"rank {makers[0].number} waits in new_group at {show_place(makers[0].place)}",
            f"rank {others[0].number} has not called it: it is at {show_place(others[0].place)}",
        )


def _seconds_here(rank: Rank) -> float:
    """For how long a rank has been at one line."""
    return rank.note["time"] - rank.note.get("since", rank.note["time"])


def _names(rank: Rank) -> set[str]:
    return {frame[2] for frame in rank.stack}


def _is_making_a_group(rank: Rank) -> bool:
    return bool(_names(rank) & {"new_group", "_new_group_with_tag", "new_subgroups"})


def seconds_since_a_call(evidence: Evidence) -> float:
    """How long ago a rank last called a collective."""
    last = max((c.created for rank in evidence.ranks for c in rank.collectives), default=0.0)
    return max(rank.note["time"] for rank in evidence.ranks) - last


def _variable(rank: Rank, name: str) -> str:
    return rank.note.get("variables", {}).get(name, "?")
