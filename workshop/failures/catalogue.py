"""The failures by name, and `reproduce`, which runs one."""

from __future__ import annotations

import time

from workshop.failures.jobs import JOBS
from workshop.failures.ranks import RANKS
from workshop.failures.reproduction import Failure, Reproduction

ALL = {failure.name: failure for failure in (*RANKS, *JOBS)}


class UnknownFailure(ValueError):
    """There is no failure of this name; the message has those that are."""


def names() -> list[str]:
    """The names of all failures."""
    return list(ALL)


def of_name(name: str) -> Failure:
    """The failure of this name. Raises UnknownFailure."""
    if name not in ALL:
        raise UnknownFailure(f"There is no failure {name!r}. There are: {', '.join(ALL)}.")
    return ALL[name]


def table():
    """A pandas table of all failures, by name: symptom, remedy, lesson, about how many seconds."""
    import pandas as pd

    columns = ("name", "symptom", "remedy", "lesson", "seconds")
    rows = [{column: getattr(failure, column) for column in columns} for failure in ALL.values()]
    return pd.DataFrame(rows).set_index("name")


def reproduce(name: str, fixed: bool = False) -> Reproduction:
    """Reproduce a failure on this machine and say what was found.

    Args:
        name: one of `names()`.
        fixed: fix the mistake first; then nothing must fail.

    Raises UnknownFailure. An interrupt ends everything that was started.
    """
    failure = of_name(name)
    print(f"About {failure.seconds} s ...", flush=True)
    began = time.monotonic()
    found = failure.run(fixed)
    return Reproduction(
        name=failure.name,
        done=failure.done,
        symptom=failure.symptom,
        line=found.line,
        remedy=failure.remedy,
        lesson=failure.lesson,
        seconds=round(time.monotonic() - began, 1),
        as_described=not found.impossible and found.failed != fixed,
        fixed=fixed,
        impossible=found.impossible,
        log=found.log,
    )
