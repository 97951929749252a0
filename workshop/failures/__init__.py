"""Ways in which distributed training breaks, each reproduced on this machine.

    from workshop import failures

    failures.table()
    run = failures.reproduce("rank-hangs")          # about 10 seconds
    print(run)                                      # symptom, line of the log, remedy
    run.log                                         # what the ranks printed
    failures.reproduce("rank-hangs", fixed=True)    # the same without the mistake

The command `workshop break` does the same at a shell.

What is said of each is in catalogue.toml. To add one of ranks, add a function to
scripts/demos/breaking/short.py, and its entry there. One that needs a check of its own has it in
ranks.py; one of a job is a function of jobs.py. Add the words that its line must have to LINES in
tests/workshop/failures/test_failure_catalogue.py.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from workshop.failures import jobs, ranks
from workshop.failures.reproduction import Failure, Reproduction

CATALOGUE = Path(__file__).with_name("catalogue.toml")


def _failures() -> Iterator[Failure]:
    """Those of catalogue.toml, in its order, each with what reproduces it."""
    content = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    for row in content["failure"]:
        row = content["line"].get(row.pop("line", ""), {}) | row
        name, pattern = row["name"], row.pop("pattern", "")
        run = (ranks.CHECKS | jobs.CHECKS).get(name)
        yield Failure(**row, run=run or partial(ranks.reproduce, name, row["cause"], pattern))


ALL = {failure.name: failure for failure in _failures()}


class UnknownFailure(ValueError):
    """There is no failure of this name; the message lists the known ones."""


def table():
    """A pandas table of all failures, by name: symptom, remedy, lesson, about how many seconds."""
    import pandas as pd

    columns = ["symptom", "remedy", "lesson", "seconds"]
    return pd.DataFrame(map(vars, ALL.values())).set_index("name")[columns]


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
