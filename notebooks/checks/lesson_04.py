"""The checks of lesson 04: a hang, warm-up, evidence of a missing step."""

from __future__ import annotations

import copy
import math
import random

from workshop.lesson.check import Wrong, exercise

REASONS = {
    "stuck": "Its last line is the end of an earlier call, so it is in its own code.",
    "other call": "Its last line begins a call, but not the one in which the others wait.",
    "left early": "Its last line is `done`: it makes no more calls.",
}


@exercise("04.1")
def diagnose(answer) -> str:
    """Logs of 3 to 5 ranks, and of 12; each rank is at fault once in each way."""
    random.seed(1)
    calls = ("allreduce", "broadcast")  # in which the others wait, and which they never make
    logs = 0
    for size in (3, 4, 5, 12):
        for rank in reversed(range(size)):
            for reason in REASONS:
                call, other = calls if rank % 2 else calls[::-1]
                log = _log(size, rank, reason, call, other)
                _check_diagnosis(answer, log, rank, reason)
                logs += 1
    return f"You found the rank at fault in {logs} logs. The others are only waiting for it."


def _log(size: int, at_fault: int, reason: str, call: str, other: str) -> list[str]:
    """What the ranks print until they hang in step 4; each rank's lines in order, else mixed."""
    by_rank = []
    for rank in range(size):
        lines = [
            f"rank {rank}: step {step} {call} {moment}"
            for step in (1, 2, 3)
            for moment in ("begins", "ends")
        ]
        end = f"step 4 {call} begins"
        if rank == at_fault:
            ends = {"stuck": None, "other call": f"step 4 {other} begins", "left early": "done"}
            end = ends[reason]
        by_rank.append([*lines, *([f"rank {rank}: {end}"] if end else [])])
    log: list[str] = []
    while any(by_rank):
        log.append(random.choice([lines for lines in by_rank if lines]).pop(0))
    return log


def _check_diagnosis(answer, log: list[str], rank: int, reason: str) -> None:
    returned = answer(list(log))
    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        raise Wrong(f"You returned {returned!r}; return a rank and one of {', '.join(REASONS)}.")
    if tuple(returned) == (rank, reason):
        return
    last = {line.split(":")[0]: line for line in log}
    shown = "\n".join(f"  {last[name]}" for name in sorted(last))
    named, why = returned
    where = f"The last line of each rank:\n{shown}\n"
    if named == rank:
        raise Wrong(f"{where}Rank {rank} is at fault, and you said {why!r}. {REASONS[reason]}")
    if f"rank {named}" not in last:
        raise Wrong(f"{where}You said rank {named!r}: there is no such rank. Return its number.")
    hint = "It waits in the call in which most ranks wait."
    if log[-1].startswith(f"rank {named}:"):
        hint += " It only printed last: the order of the lines says nothing about the fault."
    raise Wrong(f"{where}You said rank {named}, and it is rank {rank}. {hint}")


@exercise("04.2")
def learning_rate(answer) -> str:
    """Several sizes and lengths of the warm-up, none among them."""
    for single, size, warmup in ((0.1, 2, 10), (0.01, 8, 7), (0.05, 1, 5), (0.1, 4, 1)):
        for step in (0, 1, warmup // 2, warmup, warmup + 1, 50 * warmup):
            rate = answer(step, single, size, warmup)
            expected = single + single * (size - 1) * min(1.0, step / warmup)
            if not math.isclose(rate, expected, rel_tol=1e-9):
                raise Wrong(_about_the_rate(step, single, size, warmup, rate, expected))
    for step in (0, 1, 100):
        rate = answer(step, 0.1, 4, 0)
        if not math.isclose(rate, 0.4):
            raise Wrong(
                f"Without a warm-up the rate is single * size, 0.4 here, and you said {rate:g}."
            )
    return "From one rank's rate to that of all, and no step is too large for fresh weights."


def _about_the_rate(step, single, size, warmup, rate, expected) -> str:
    case = f"single={single}, size={size}, warmup_steps={warmup}: at step {step}"
    if step == 0 and rate == 0:
        why = "A rate of 0 learns nothing; begin with one rank's rate."
    elif step > warmup and rate > expected:
        why = "After the warm-up it must stay where it is."
    elif step == 0 and size > 1 and math.isclose(rate, single * size):
        why = "That is the full rate at once: no warm-up."
    else:
        why = "It grows in a straight line from single to single * size."
    return f"{case} the rate is {expected:.6g}, and you said {rate:.6g}. {why}"


@exercise("04.3")
def missing_step(answer) -> str:
    """Two, three and four ranks; any one of them may differ from the others."""
    for size in (2, 3, 4):
        for step, ranks in (case for odd in reversed(range(size)) for case in _evidence(size, odd)):
            named = answer(copy.deepcopy(ranks))
            if named != step:
                table = "\n".join(f"  rank {i}: {evidence}" for i, evidence in enumerate(ranks))
                raise Wrong(
                    f"This run lacks {step or 'nothing'}, and you said {named!r}:\n{table}\n"
                    f"{_WHY[step]}"
                )
    return "Equal weights prove averaging only if the ranks saw different images."


_WHY = {
    "broadcast": "Right after the broadcast all ranks would have the same weights. Some differ.",
    "tape": "They were equal after the first step and drifted apart: nothing averaged.",
    "shard": "The weights agree, but ranks saw the same images: the work was done twice.",
    None: "The weights agree on all ranks, and every rank saw other images.",
}


def _evidence(size: int, odd_rank: int) -> list[tuple[str | None, list[dict]]]:
    """For each step that may be missing: what every rank has."""
    same = ["a0"] * size
    odd = ["b1" if rank == odd_rank else "a0" for rank in range(size)]
    different = [f"c{rank}" for rank in range(size)]
    cases = {
        None: (same, same, different),
        "broadcast": (odd, odd, different),
        "tape": (same, odd, different),
        "shard": (same, same, same),
    }
    keys = ("weights_after_first_step", "weights_at_end", "images_seen")
    return [
        (step, [dict(zip(keys, hashes, strict=True)) for hashes in zip(*columns, strict=True)])
        for step, columns in cases.items()
    ]
