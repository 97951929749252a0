"""The checks of lesson 04: places of ranks, warm-up, evidence of a missing step."""

from __future__ import annotations

import copy
import math

from workshop.lesson.check import Wrong, exercise

SLOTS = ([1], [4], [2, 2], [2, 1], [1, 3, 2], [4, 4, 4])


@exercise("04.1")
def place(answer) -> str:
    """Every rank of hosts with equal and with unequal numbers of slots."""
    for slots in SLOTS:
        places = [(host, at, here) for host, here in enumerate(slots) for at in range(here)]
        for rank, expected in enumerate(places):
            found = answer(rank, list(slots))
            if not isinstance(found, (tuple, list)) or len(found) != 3:
                raise Wrong(f"You returned {found!r}; return host, local_rank and local_size.")
            if tuple(found) != expected:
                raise Wrong(_which_differs(rank, slots, tuple(found), expected))
    return "Hosts are filled one after the other, and local_rank begins at 0 on each."


def _which_differs(rank: int, slots: list[int], found: tuple, expected: tuple) -> str:
    names = ("host", "local_rank", "local_size")
    at = next(i for i in range(3) if found[i] != expected[i])
    advice = {
        "host": "Ranks fill one host before they fill the next.",
        "local_rank": "It counts the ranks of one host, from 0.",
        "local_size": "It is the number of ranks on that rank's own host, not of all.",
    }[names[at]]
    return (
        f"With slots {slots}, rank {rank} has {names[at]} {expected[at]}, and you said "
        f"{found[at]!r}. {advice}"
    )


@exercise("04.2")
def learning_rate(answer) -> str:
    """Several sizes and lengths of the warm-up, none among them."""
    for single, size, warmup in ((0.1, 2, 10), (0.01, 8, 7), (0.05, 1, 5), (0.1, 4, 1)):
        for step in (0, 1, warmup // 2, warmup, warmup + 1, 50 * warmup):
            found = answer(step, single, size, warmup)
            expected = single + single * (size - 1) * min(1.0, step / warmup)
            if not math.isclose(found, expected, rel_tol=1e-9):
                raise Wrong(_about_the_rate(step, single, size, warmup, found, expected))
    for step in (0, 1, 100):
        found = answer(step, 0.1, 4, 0)
        if not math.isclose(found, 0.4):
            raise Wrong(
                f"Without a warm-up the rate is single * size, 0.4 here, and you said {found:g}."
            )
    return "From one rank's rate to that of all, and no step is too large for fresh weights."


def _about_the_rate(step, single, size, warmup, found, expected) -> str:
    asked = f"single={single}, size={size}, warmup_steps={warmup}: at step {step}"
    if step == 0 and found == 0:
        why = "A rate of 0 learns nothing; begin with one rank's rate."
    elif step > warmup and found > expected:
        why = "After the warm-up it must stay where it is."
    elif step == 0 and size > 1 and math.isclose(found, single * size):
        why = "That is the full rate at once: no warm-up."
    else:
        why = "It grows in a straight line from single to single * size."
    return f"{asked} the rate is {expected:.6g}, and you said {found:.6g}. {why}"


@exercise("04.3")
def missing_step(answer) -> str:
    """Two, three and four ranks; any one of them may differ from the others."""
    for size in (2, 3, 4):
        for step, ranks in (case for odd in reversed(range(size)) for case in _evidence(size, odd)):
            found = answer(copy.deepcopy(ranks))
            if found != step:
                table = "\n".join(f"  rank {i}: {one}" for i, one in enumerate(ranks))
                raise Wrong(
                    f"This run lacks {step or 'nothing'}, and you said {found!r}:\n{table}\n"
                    f"{_WHY[step]}"
                )
    return "Equal weights prove synchronisation only where the ranks saw different images."


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
    own = [f"c{rank}" for rank in range(size)]
    cases = {
        None: (same, same, own),
        "broadcast": (odd, odd, own),
        "tape": (same, odd, own),
        "shard": (same, same, same),
    }
    keys = ("weights_after_first_step", "weights_at_end", "images_seen")
    return [
        (step, [dict(zip(keys, one, strict=True)) for one in zip(*columns, strict=True)])
        for step, columns in cases.items()
    ]
