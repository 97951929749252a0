"""Failures of ranks: run a function of scripts/demos/breaking/, and check the outcome.

`reproduce` does so for most. CHECKS has those that need another check; each takes whether the
mistake is fixed first. What is said of them is in catalogue.toml.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterable

from workshop.diagnosis.answer import diagnose
from workshop.failures.reproduction import CheckResult, first_line, three_lines
from workshop.launch.mpirun import line_from_mpirun, mpirun_command
from workshop.launch.processes import INTERFACE, TORCHRUN, Line, Processes, free_port
from workshop.paths import DATA, DEMOS, ROOT

SCRIPT = DEMOS / "break_training.py"
LIMIT_SECONDS = 240.0  # far more than any takes on a quiet machine
LR_EPOCHS = 4
# Measured: 5.3 times the loss of one rank with the rate left alone, 0.95 times with it scaled.
WORSE = 2
VARIABLES = {
    "GLOO_SOCKET_IFNAME": INTERFACE,
    # Without it ranks that torchrun starts again find, now and then, the addresses of those that
    # are dead (https://github.com/pytorch/pytorch/issues/135712, read 2026-11-22).
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
}


def mpirun(name: str, options: Iterable, ranks: int = 2) -> Processes:
    """Start a way of break_training.py under mpirun."""
    command = mpirun_command(ranks, [sys.executable, str(SCRIPT), name, *map(str, options)])
    return Processes(
        [command], VARIABLES | {"MASTER_PORT": free_port()}, line_from=line_from_mpirun
    )


def torchrun(name: str, options: Iterable, restarts: int = 0) -> Processes:
    """Start a way of break_training.py under torchrun, on 2 ranks."""
    how = ["--standalone", "--nproc_per_node", 2, "--max-restarts", restarts]
    return Processes([[*TORCHRUN, *how, SCRIPT, name, *options]], VARIABLES, line_from=Line)


def to_end(processes: Processes) -> Processes:
    """Wait until all have ended; the status is None if the time was up."""
    with processes:
        processes.until(lambda: False, LIMIT_SECONDS - processes.seconds)
    return processes


def last_line(processes: Processes) -> str:
    """The last line; empty if there is none."""
    return processes.lines[-1].text if processes.lines else ""


def script_options(fixed: bool) -> list[str]:
    """What every script gets: its data, and whether the mistake is fixed."""
    import data_prep

    digits = data_prep.digits.prepare(DATA / "digits", quiet=True)
    channels = ["--training", str(digits / "training"), "--test", str(digits / "test")]
    return channels + ["--fixed"] * fixed


def short(line: str) -> str:
    """A line without this machine's folders."""
    line = line.strip().replace(f"{ROOT}/", "")
    return line if len(line) <= 200 else line[:197] + "..."


def numbered_log(processes: Processes) -> tuple[str, ...]:
    """All lines, each after its rank in brackets, without this machine's folders."""
    folders = re.compile(rf"/[^\"\s]*/site-packages/|{re.escape(str(ROOT))}/")
    return tuple(folders.sub("", str(line)) for line in processes.lines)


def good_end(processes: Processes) -> CheckResult:
    """Check a run with the mistake fixed: both ranks must finish."""
    failed = processes.statuses != [0] or len(processes.events("end")) != 2
    line = first_line(processes.lines, '"event": "end"')
    return CheckResult(failed, line, log=numbered_log(processes), why=three_lines(processes))


def reproduce(name: str, cause: str, pattern: str, fixed: bool) -> CheckResult:
    """Run a way on two ranks, and ask why.

    Broken, the log must have a line with the pattern, if there is one, and `workshop why` must name
    the cause. Fixed, both ranks must come to their end, and `why` must name another cause or none.
    """
    with tempfile.TemporaryDirectory(prefix="workshop-failures-") as folder:
        done = to_end(mpirun(name.replace("-", "_"), [*script_options(fixed), "--save-to", folder]))
    answer = diagnose(done.record)
    log, lines = numbered_log(done), str(answer).splitlines()[:3]
    if fixed:
        end = good_end(done)
        why = end.why if end.failed else ""
        return CheckResult(end.failed or answer.cause == cause, end.line, log=log, why=why)
    line = first_line(done.lines, pattern) if pattern else lines[0]
    failed = bool(line) and answer.cause == cause
    return CheckResult(failed, short(line), log=log, why="\n".join(lines))


def rank_dies(fixed: bool) -> CheckResult:
    """torchrun, then mpirun: both end the other rank. Fixed: torchrun starts both again."""
    options = script_options(False)
    if fixed:
        done = to_end(torchrun("rank_dies", options, restarts=1))
        ends = [record for record in done.events("end") if record["restarts"] == 1]
        return CheckResult(
            done.statuses != [0] or len(ends) != 2, first_line(done.lines, '"restarts": 1')
        )
    first = to_end(torchrun("rank_dies", options))
    second = to_end(mpirun("rank_dies", options))
    lines = [
        first_line(first.lines, r"Signal 9 \(SIGKILL\)|exitcode\s*: -9"),
        first_line(second.lines, r"signal 9"),
    ]
    failed = all(lines) and all(
        run.failed == 0 and not run.events("end") for run in (first, second)
    )
    line = f"torchrun: {lines[0].strip()}  mpirun: {lines[1].strip()}"
    return CheckResult(failed, line, why=three_lines(first))


def rank_hangs(fixed: bool) -> CheckResult:
    """Both ranks wait. Their stacks show where; gloo's timeout ends them."""
    with (
        tempfile.TemporaryDirectory(prefix="workshop-failures-") as folder,
        mpirun("rank_hangs", [*script_options(fixed), "--save-to", folder]) as processes,
    ):
        shown = fixed or _ask_for_stacks(processes, {0: r"in barrier$", 1: r"in wait_for$"})
        to_end(processes)
    if fixed:
        return good_end(processes)
    timed_out = first_line(processes.lines, r"Timed out waiting \d+ms")
    where = first_line(processes.lines, r"line \d+ in wait_for$")
    failed = shown and bool(timed_out and where) and processes.failed == 0
    line = f"{short(where)}  and then: {short(timed_out)}"
    return CheckResult(failed, line, log=numbered_log(processes), why=three_lines(processes))


def _ask_for_stacks(processes: Processes, waiting: dict[int, str]) -> bool:
    """Ask each rank for its stack (`kill -USR1 PID`) until it waits; False if one never does.

    waiting: rank -> a pattern of its innermost call, once it waits.
    """
    processes.until(lambda: len(processes.events("rank")) == len(waiting), LIMIT_SECONDS)
    pids = {record["rank"]: record["pid"] for record in processes.events("rank")}
    processes.until(lambda: False, 1)  # by then they wait: an earlier stack would only distract
    return all(
        rank in pids and _ask_for_stack(processes, rank, pids[rank], pattern)
        for rank, pattern in waiting.items()
    )


def _ask_for_stack(processes: Processes, rank: int, pid: int, waiting: str) -> bool:
    """Ask one rank until it waits."""

    def waits() -> bool:
        of_rank = [line for line in list(processes.lines) if line.rank == rank]
        return bool(first_line(of_rank, waiting))

    while processes.seconds < LIMIT_SECONDS:
        try:
            os.kill(pid, signal.SIGUSR1)
        except ProcessLookupError:
            return False
        if processes.until(waits, timeout=1):
            return waits()
    return False


def lr_not_scaled(fixed: bool) -> CheckResult:
    """No rank fails. After as many epochs the loss of two ranks is higher than that of one."""
    options = ["--epochs", LR_EPOCHS, "--learning-rate", 0.1]
    with (
        mpirun("lr_not_scaled", [*script_options(False), *options], ranks=1) as one_rank,
        mpirun("lr_not_scaled", [*script_options(fixed), *options]) as two_ranks,
    ):
        runs = [to_end(one_rank), to_end(two_ranks)]
    losses = [[record["train_loss"] for record in run.events("loss")] for run in runs]
    if any(len(of_run) != LR_EPOCHS for of_run in losses):
        return CheckResult(fixed, last_line(runs[0]) or last_line(runs[1]))
    last = [of_run[-1] for of_run in losses]
    line = f'"train_loss" after {LR_EPOCHS} epochs: 1 rank {last[0]}, 2 ranks {last[1]}'
    return CheckResult(last[1] > WORSE * last[0], line)


CHECKS = {"rank-dies": rank_dies, "rank-hangs": rank_hangs, "lr-not-scaled": lr_not_scaled}
