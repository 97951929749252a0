"""Checks of lesson 05's exercises."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral

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


# name -> (instances, samples/s, USD per hour, overhead s)
TABLES = {
    "one price": {
        "1 x 4": (1, 1000, 0.204, 60),
        "2 x 4": (2, 1900, 0.204, 60),
        "4 x 4": (4, 3000, 0.204, 60),
    },
    "a GPU, dear by the hour": {
        "gpu": (1, 20000, 1.408, 200),
        "1 x 2": (1, 900, 0.204, 60),
        "4 x 1": (4, 1200, 0.204, 60),
    },
    "perfect speed-up": {"1 x 1": (1, 500, 0.2, 0), "2 x 1": (2, 1000, 0.2, 0)},
}
WORKLOADS = ((1_000_000, 2000), (1_000_000, 900), (1_000_000, 450), (1000, 3600), (5_000_000, 300))


@exercise("05.3")
def cheapest(answer) -> str:
    """Several tables and deadlines, against the cost of every row."""
    for rows in TABLES.values():
        columns = ["instances", "samples/s", "USD per hour", "overhead s"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        for samples, deadline in WORKLOADS:
            _check_choice(answer(table.copy(), samples, deadline), rows, samples, deadline)
    return "Late rows go first; then cost decides, and every instance and its overhead count."


def _check_choice(got, rows: dict, samples: int, deadline: int) -> None:
    rated = {
        name: (count * seconds / 3600 * price, seconds)
        for name, (count, speed, price, overhead) in rows.items()
        for seconds in [overhead + samples / speed]
    }
    in_time = [name for name in rated if rated[name][1] <= deadline]
    # Costs that differ by rounding only are the same.
    right = min(in_time, key=lambda name: (round(rated[name][0], 9), rated[name][1]), default=None)
    if got == right:
        return
    call = f"cheapest(table, {samples}, {deadline}) with the rows {', '.join(rows)}: "
    if right is None:
        raise Wrong(f"{call}none is ready in time, so return None. You chose {got!r}.")
    if got is None or got not in rated:
        raise Wrong(f"{call}{right!r} is right, you returned {got!r}. Return a row's name.")
    if got not in in_time:
        raise Wrong(f"{call}{got!r} takes {rated[got][1]:.0f} s, which is too late.")
    if round(rated[got][0], 9) == round(rated[right][0], 9):
        raise Wrong(f"{call}{got!r} and {right!r} cost the same; {right!r} is faster.")
    raise Wrong(
        f"{call}{got!r} costs {rated[got][0]:.4f} USD and {right!r} {rated[right][0]:.4f}. "
        "Count every instance, and the overhead, which is billed too."
    )
