"""Failures of a few lines: functions of scripts/demos/breaking/short.py, all checked alike.

Broken, the log must have its line, if the failure has one, and `workshop why` must name the cause.
Fixed, both ranks must come to their end, and `why` must name another cause or none.
"""

from __future__ import annotations

import tempfile
from functools import partial

from workshop.diagnosis.answer import diagnose
from workshop.failures.catalogue import entries, failures
from workshop.failures.ranks import (
    good_end,
    mpirun,
    numbered_log,
    script_options,
    short,
    to_end,
)
from workshop.failures.reproduction import CheckResult, first_line


def reproduce_short(name: str, cause: str, pattern: str, fixed: bool) -> CheckResult:
    """Run a function of short.py on two ranks, and ask why. pattern: of the log's line."""
    with tempfile.TemporaryDirectory(prefix="workshop-failures-") as folder:
        done = to_end(mpirun(name, [*script_options(fixed), "--save-to", folder]))
    answer = diagnose(done.record)
    log, lines = numbered_log(done), str(answer).splitlines()
    if fixed:
        end = good_end(done)
        return CheckResult(end.failed or answer.cause == cause, end.line, log=log)
    line = first_line(done.lines, pattern) if pattern else lines[0]
    failed = bool(line) and answer.cause == cause
    return CheckResult(failed, short(line), log=log, why="\n".join(lines[:3]))


SHORT = failures(
    "short",
    {
        row["name"]: partial(
            reproduce_short, row["name"].replace("-", "_"), row["cause"], row.get("pattern", "")
        )
        for row in entries("short")
    },
)
