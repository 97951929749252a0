"""Ways in which distributed training breaks, each reproduced on this machine.

    from workshop import failures

    failures.table()
    run = failures.reproduce("rank-hangs")          # about 10 seconds
    print(run)                                      # symptom, line of the log, remedy
    run.log                                         # what the ranks printed
    failures.reproduce("rank-hangs", fixed=True)    # the same without the mistake

The command `workshop break` does the same at a shell.

What is said of each is in catalogue.toml. To add one of a few lines, add a function to
scripts/demos/breaking/short.py, and its entry there. One of ranks that needs more is a script,
scripts/demos/breaking/NAME.py, and its check in ranks.py; one of a job is a function of jobs.py.
Add the words that its line must have to LINES in
tests/workshop/failures/test_failure_catalogue.py.
"""

from __future__ import annotations

import time

from workshop.failures.jobs import JOBS
from workshop.failures.ranks import RANKS
from workshop.failures.reproduction import Reproduction
from workshop.failures.short import SHORT

ALL = {failure.name: failure for failure in (*RANKS, *JOBS, *SHORT)}


class UnknownFailure(ValueError):
    """There is no failure of this name; the message lists the known ones."""


def table():
    """A pandas table of all failures, by name: symptom, remedy, lesson, about how many seconds."""
    import pandas as pd

    columns = ("name", "symptom", "remedy", "lesson", "seconds")
    rows = [{column: getattr(failure, column) for column in columns} for failure in ALL.values()]
    return pd.DataFrame(rows).set_index("name")


def reproduce(name: str, fixed: bool = False) -> Reproduction:
    """Reproduce a failure on this machine and report the outcome.

    Args:
        name: one of the table.
        fixed: fix the mistake first; then nothing must fail.

    Raises UnknownFailure. An interrupt ends everything that was started.
    """
    if name not in ALL:
        raise UnknownFailure(f"There is no failure {name!r}. There are: {', '.join(ALL)}.")
    failure = ALL[name]
    print(f"About {failure.seconds} s, longer on a busy machine ...", flush=True)
    began = time.monotonic()
    result = failure.run(fixed)
    seconds = round(time.monotonic() - began, 1)
    return Reproduction(**vars(result), failure=failure, fixed=fixed, seconds=seconds)
