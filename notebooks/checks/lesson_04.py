"""The checks of lesson 04: a conversion to Horovod, warm-up, evidence of a missing step."""

from __future__ import annotations

import copy
import math
import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import cloudpickle

from workshop.launch.horovod import horovod_status
from workshop.launch.mpirun import mpirun
from workshop.launch.processes import ProcessFailed
from workshop.lesson.check import Wrong, exercise, unanswered
from workshop.paths import DEMOS, TRAIN

CLOSE = 1e-4  # largest difference of a weight that rounding makes in a few steps


@exercise("04.1", seconds=300)
def train(answer) -> str:
    """The training on two ranks under mpirun, and its evidence beside one process."""
    status = horovod_status()
    if not status.available:
        raise Wrong(f"This exercise needs Horovod, and the check too. {status}.")
    _check_evidence(_evidence_of_two_ranks(answer))
    return (
        "Two real ranks began with equal weights, shared no image, and ended with the weights that "
        "one process gets. That is train_tf_horovod.py of lesson 05."
    )


def _evidence_of_two_ranks(answer) -> list[dict]:
    """The records of the two ranks, by rank."""
    with tempfile.TemporaryDirectory(prefix="workshop-answer-") as folder:
        file = Path(folder) / "answer"
        file.write_bytes(cloudpickle.dumps(answer))
        program = DEMOS / "parallel" / "practice_horovod.py"
        modules = os.pathsep.join([str(DEMOS), str(TRAIN), *filter(None, sys.path)])
        try:
            done = mpirun(2, program, file, show=False, timeout=150, PYTHONPATH=modules)
        except ProcessFailed as error:
            if unanswered("04.1") in str(error):
                raise
            raise Wrong(f"Your ranks did not reach the end:\n{error}") from error
    return done.table("evidence").to_dict("records")


def _check_evidence(ranks: list[dict]) -> None:
    table = "\n".join(
        f"  rank {rank['rank']}: weights at the first step {rank['first_weights'][:6]}, at the end "
        f"{rank['weights'][:6]}; {len(rank['images'])} images; saved {rank['saved']} times"
        for rank in ranks
    )
    if reason := _fault(ranks):
        raise Wrong(f"{reason}\nThe evidence:\n{table}")


def _fault(ranks: list[dict]) -> str:
    """What the evidence of two ranks says is wrong; empty if nothing is."""
    if not all(rank["initialized"] for rank in ranks):
        return "TODO 1: Horovod was not started, so these are two trainings that never met."
    if any(rank["pinned"] == [rank["rank"]] for rank in ranks):
        return (
            "TODO 2: you pinned by rank. The check pretends to be on hosts where rank and "
            "local_rank differ, as on two instances: there is no such GPU there."
        )
    if any(len(rank["pinned"]) != 1 for rank in ranks):
        return "TODO 2: each rank must call pin once, with its local_rank."
    if ranks[0]["first_weights"] != ranks[1]["first_weights"]:
        return (
            "TODO 3: at the first step the ranks have different weights, so they would average "
            "gradients of different models. Broadcast rank 0's."
        )
    return _fault_of_images(ranks) or _fault_of_the_end(ranks)


def _fault_of_images(ranks: list[dict]) -> str:
    counts = Counter(image for rank in ranks for image in rank["images"])
    twice = [image for image, count in counts.items() if count > 1]
    if twice:
        return f"TODO 4: {len(twice)} images were seen by both ranks. Give each a part of its own."
    if left := ranks[0]["all_images"] - len(counts):
        return f"TODO 4: {left} images were seen by no rank."
    return ""


def _fault_of_the_end(ranks: list[dict]) -> str:
    if ranks[0]["weights"] != ranks[1]["weights"]:
        return (
            "TODO 5: the ranks began with equal weights and drifted apart: each follows its own "
            "gradients. Wrap the tape before tape.gradient."
        )
    if not all(rank["expected"] < CLOSE for rank in ranks):
        apart = max(rank["expected"] for rank in ranks)
        return (
            f"The ranks agree, and one process gets other weights (up to {apart:.2g} apart). Did "
            "you change the learning rate, or the order of the images? Return the model, too."
        )
    if [rank["saved"] for rank in ranks] != [1, 0]:
        return "TODO 6: rank 0 must save once, and no other rank."
    return ""


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
