"""Checks of lesson 05's exercises."""

from __future__ import annotations

import copy
import json
import random
from itertools import pairwise
from numbers import Integral

import numpy as np
import pandas as pd

from workshop.account.prices import GRACE_SECONDS
from workshop.lesson.check import Wrong, exercise


@exercise("05.1")
def most_instances(answer) -> str:
    """Several budgets, against the bill of a job that hangs until it has been stopped."""
    for budget, price, max_run in (
        (1.0, 0.204, 900),
        (0.25, 0.204, 3600),
        (100.0, 28.99, 3600),
        (10.0, 1.408, 1800),
        (0.05, 0.204, 900),
        (0.01, 0.204, 900),
    ):
        at_most = price * (max_run + GRACE_SECONDS) / 3600
        right = int(budget / at_most)
        call = f"most_instances({budget}, {price}, {max_run})"
        got = answer(budget, price, max_run)
        if isinstance(got, bool) or not isinstance(got, Integral):
            raise Wrong(f"{call} gave {got!r}: instances are whole numbers. Return an int.")
        if got == right:
            continue
        bill = f"{got} instances that hang cost {got * at_most:.3f} USD"
        if right == 0 and got == 1:
            raise Wrong(f"{call} gave 1: {bill}, more than the budget. Then the answer is 0.")
        if got == int(budget / price) and max_run != 3600:
            raise Wrong(f"{call} gave {got}: the price is for an hour, the job has {max_run} s.")
        if got == int(budget / (price * max_run / 3600)):
            raise Wrong(
                f"{call} gave {got}: {bill}, more than the budget of {budget}. After max_run a "
                f"job may take {GRACE_SECONDS} s to stop, and they are billed."
            )
        if got > right:
            raise Wrong(f"{call} gave {got}: {bill}, more than the budget of {budget}.")
        raise Wrong(f"{call} gave {got}: {bill}, and {right} still fit the budget of {budget}.")
    return "max_run and the time to stop turn a price per hour into a bill that can't be exceeded."


@exercise("05.2")
def distribution_for(answer) -> str:
    """The dictionary for several numbers of slots."""
    for slots in (4, 2, 1, 8):
        distribution = answer(slots)
        _check_launcher(distribution)
        _check_keys(distribution["mpi"])
        _check_values(distribution["mpi"], slots)
    return "Horovod, a process in every slot, and an option that Open MPI's mpirun understands."


def _check_launcher(distribution) -> None:
    if not isinstance(distribution, dict):
        raise Wrong(f"Return a dictionary, not {distribution!r}.")
    if "parameter_server" in distribution:
        raise Wrong(
            '"parameter_server" does not start mpirun: each instance would train alone, as rank 0 '
            'of 1. What starts Horovod is "mpi".'
        )
    if set(distribution) != {"mpi"} or not isinstance(distribution["mpi"], dict):
        raise Wrong(f'The one key must be "mpi", its value a dictionary; yours: {distribution!r}.')


def _check_keys(inner: dict) -> None:
    right = {"enabled", "processes_per_host", "custom_mpi_options"}
    for key in inner:
        if key not in right:
            raise Wrong(
                f"The SDK does not know {key!r} and silently ignores it. The three keys are "
                f"{', '.join(sorted(right))}."
            )
    if missing := right - set(inner):
        raise Wrong(f"{', '.join(sorted(missing))} is missing in {inner!r}.")


def _check_values(inner: dict, slots: int) -> None:
    if inner["enabled"] is not True:
        raise Wrong(f"enabled must be True, not {inner['enabled']!r}.")
    if inner["processes_per_host"] == slots - 1:
        raise Wrong(
            f"With {slots} slots you start {slots - 1} processes. processes_per_host is at most "
            "the number of slots, not less than it: one slot, and its GPU, would be idle."
        )
    if inner["processes_per_host"] != slots:
        raise Wrong(
            f"With {slots} slots, processes_per_host is {inner['processes_per_host']!r}; use "
            "every slot."
        )
    words = str(inner["custom_mpi_options"]).split()
    if any(word.startswith("--NCCL_DEBUG") for word in words):
        raise Wrong(
            "--NCCL_DEBUG isn't an option of mpirun: only SageMaker's toolkit knows it. "
            "-x NAME=VALUE sets a variable on every rank, anywhere."
        )
    if ("-x", "NCCL_DEBUG=INFO") in pairwise(words):
        return
    if '"' in inner["custom_mpi_options"] or "'" in inner["custom_mpi_options"]:
        raise Wrong(
            f"custom_mpi_options is {inner['custom_mpi_options']!r}. SageMaker's toolkit only "
            "splits it at spaces: no shell removes your quotation marks, so leave them out."
        )
    raise Wrong(
        f"custom_mpi_options is {' '.join(words)!r}, and lacks -x NCCL_DEBUG=INFO: two words, "
        "and no space around the equals sign."
    )


@exercise("05.3")
def not_synchronised(answer) -> str:
    """Pairs of logs in which either job is at fault, by all ranks or by one of four."""
    random.seed(1)
    for hashes in (["a1", "b2", "c3", "d4"], ["a1", "a1", "a1", "d4"], ["a1", "b2", "a1", "a1"]):
        for at_fault in (0, 1):
            # The job at fault has the better accuracy: that proves nothing.
            logs = {
                f"horovod-{number}": _job_log(
                    hashes if number == at_fault else ["e5"] * 4, 0.95 + 0.01 * (number == at_fault)
                )
                for number in (0, 1)
            }
            named = answer(copy.deepcopy(logs))
            if named != f"horovod-{at_fault}":
                shown = ", ".join(hashes)
                raise Wrong(
                    f"The ranks of horovod-{at_fault} ended with the hashes {shown}, those of the "
                    f"other job with one hash. You said {named!r}. Return the name of the job "
                    "with more than one different hash, whichever ranks agree."
                )
    return "One hash on all ranks that took different images: one model. Accuracy can't tell."


def _job_log(hashes: list[str], accuracy: float) -> list[str]:
    """Lines of a job of four ranks, whose last records come in any order."""
    text = ["Starting MPI run as the first instance", "Num slots: 2", "Reporting training SUCCESS"]
    epoch = {"event": "epoch", "epoch": 4, "train_loss": 0.31, "test_accuracy": accuracy}
    weights = [
        {"event": "weights", "rank": rank, "weights_sha256": digest}
        for rank, digest in enumerate(hashes)
    ]
    random.shuffle(weights)
    return [*text[:2], *map(json.dumps, [epoch, *weights]), text[2]]


@exercise("05.4")
def judge(answer) -> str:
    """Tables of five and seven rounds, with a busy round, small differences and one exception."""
    for rounds in (5, 7):
        for busy in (0, rounds - 1):
            _check_verdicts(answer, *_rounds(rounds, busy))
    return "A ratio within a round, beside the noise of two equal runs: that is what counts."


def _rounds(rounds: int, busy: int) -> tuple[pd.DataFrame, dict[str, str]]:
    """Seconds by round, on a machine ever busier, and what they show."""
    load = np.linspace(1, 1.5, rounds)
    load[busy] *= 2
    noise = 1 + 0.04 * np.array([(-1) ** number for number in range(rounds)])
    exception = np.full(rounds, 0.8)
    exception[1] = 1.1
    inside = np.full(rounds, 1.02)  # slower in every round, and inside the noise
    inside[np.argsort(load)[rounds // 2]] = 1.06  # so the medians' ratio is outside
    ratios = {
        "A": np.ones(rounds),
        "A again": noise,
        "B": np.full(rounds, 0.8),
        "C": inside,
        "D": np.full(rounds, 1.3),
        "E": exception,
    }
    verdicts = {"B": "faster", "C": NOTHING, "D": "slower", "E": NOTHING}
    return pd.DataFrame({name: 0.1 * load * ratio for name, ratio in ratios.items()}), verdicts


NOTHING = "no difference shown"
_REASONS = {
    "B": "It took 0.8 times as long as A in every round; A again differs by at most 4 %.",
    "C": "Its median ratio is 1.02, and two runs of A differ by 4 %.",
    "D": "It took 1.3 times as long as A in every round; A again differs by at most 4 %.",
    "E": "In one round it was slower than A, in the others faster.",
}


def _check_verdicts(answer, seconds: pd.DataFrame, verdicts: dict[str, str]) -> None:
    given = answer(seconds.copy())
    if not isinstance(given, dict) or set(given) != set(verdicts):
        raise Wrong(
            f"You returned {given!r}; return a dictionary with the keys {', '.join(verdicts)}."
        )
    for name, verdict in verdicts.items():
        if given[name] != verdict:
            raise Wrong(
                f"{name} is {verdict!r}, and you said {given[name]!r}. {_REASONS[name]} (The "
                "rounds differ for all: take ratios within a round, then their median.)"
            )
