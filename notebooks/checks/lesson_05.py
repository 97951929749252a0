"""Checks of lesson 05's exercises."""

from __future__ import annotations

import pandas as pd

from workshop.lesson.check import Wrong, exercise


@exercise("05.1")
def place(answer) -> str:
    """Every rank of several jobs, against the log of such a job."""
    for hosts, each in ((2, 2), (1, 4), (4, 1), (3, 5), (5, 3)):
        ranks = range(hosts * each)
        expected = [(f"algo-{host + 1}", local) for host in range(hosts) for local in range(each)]
        found = [answer(rank, each) for rank in ranks]
        for rank, right, got in zip(ranks, expected, found, strict=True):
            if got != right and list(got) != list(right):
                raise Wrong(_misplaced(rank, hosts, each, right, got, found))
    return "One host is filled before the next, and local_rank starts again at 0 on each."


def _misplaced(rank, hosts, each, right, got, found) -> str:
    said = f"place({rank}, {each}) is {right}, and you said {got}: {hosts} hosts, {each} ranks each"
    if not (isinstance(got, tuple) and len(got) == 2):
        return f"{said}. Return two things: the host's name and the local_rank."
    if any(one[0] == "algo-0" for one in found):
        return f"{said}. Hosts are counted from 1: the first is algo-1."
    if got[0] == f"algo-{rank % hosts + 1}" and got[0] != right[0]:
        return f"{said}. You deal the ranks out in turn; MPI fills one host before the next."
    if got[1] == rank:
        return f"{said}. local_rank starts again at 0 on each host; you gave the rank."
    if got[1] == right[1] + 1:
        return f"{said}. local_rank counts from 0."
    return f"{said}."


@exercise("05.2")
def distribution_for(answer) -> str:
    """The dictionary for several numbers of slots."""
    for slots in (4, 2, 1, 8):
        found = answer(slots)
        _check_launcher(found)
        _check_keys(found["mpi"])
        _check_values(found["mpi"], slots)
    return "Horovod, a process in every slot, and an option that every mpirun understands."


def _check_launcher(found) -> None:
    if not isinstance(found, dict):
        raise Wrong(f"Return a dictionary, not {found!r}.")
    if "parameter_server" in found:
        raise Wrong(
            '"parameter_server" starts no mpirun: each instance would train alone, as rank 0 of '
            '1. Horovod is started by "mpi".'
        )
    if set(found) != {"mpi"} or not isinstance(found["mpi"], dict):
        raise Wrong(f'The one key must be "mpi", its value a dictionary; yours: {found!r}.')


def _check_keys(inner: dict) -> None:
    right = {"enabled", "processes_per_host", "custom_mpi_options"}
    for key in inner:
        if key not in right:
            raise Wrong(
                f"The SDK does not know {key!r} and ignores it in silence. The three keys are "
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
            "the number of slots, not less than it: one slot, and its GPU, would stand idle."
        )
    if inner["processes_per_host"] != slots:
        raise Wrong(
            f"With {slots} slots, processes_per_host is {inner['processes_per_host']!r}; use "
            "every slot."
        )
    words = str(inner["custom_mpi_options"]).split()
    if any(word.startswith("--NCCL_DEBUG") for word in words):
        raise Wrong(
            "--NCCL_DEBUG is no option of mpirun: only SageMaker's toolkit knows it. "
            "-x NAME=VALUE sets a variable on every rank, anywhere."
        )
    if words != ["-x", "NCCL_DEBUG=INFO"]:
        raise Wrong(f"custom_mpi_options is {' '.join(words)!r}; set the variable with -x.")


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
ASKED = ((1_000_000, 2000), (1_000_000, 900), (1_000_000, 450), (1000, 3600), (5_000_000, 300))


@exercise("05.3")
def cheapest(answer) -> str:
    """Several tables and deadlines, against the cost of every row."""
    for rows in TABLES.values():
        columns = ["instances", "samples/s", "USD per hour", "overhead s"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        for samples, deadline in ASKED:
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
    asked = f"cheapest(table, {samples}, {deadline}) with the rows {', '.join(rows)}: "
    if right is None:
        raise Wrong(f"{asked}none is ready in time, so return None. You chose {got!r}.")
    if got is None or got not in rated:
        raise Wrong(f"{asked}{right!r} is right, you returned {got!r}. Return a row's name.")
    if got not in in_time:
        raise Wrong(f"{asked}{got!r} takes {rated[got][1]:.0f} s, which is too late.")
    if round(rated[got][0], 9) == round(rated[right][0], 9):
        raise Wrong(f"{asked}{got!r} and {right!r} cost the same; {right!r} is faster.")
    raise Wrong(
        f"{asked}{got!r} costs {rated[got][0]:.4f} USD and {right!r} {rated[right][0]:.4f}. "
        "Count every instance, and the overhead, which is billed too."
    )
