"""The failures of ranks: each function reproduces one with a script of scripts/breaking/.

Each takes whether the mistake is mended first, and returns what was seen.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path

from workshop.breaking.programs import Ended, Program, mpirun, run, run_together, torchrun
from workshop.breaking.shown import Seen
from workshop.paths import DATA, SCRIPTS

LIMIT_SECONDS = 240.0  # far more than any takes on a quiet machine
LR_EPOCHS = 4
# Measured: 5.3 times the loss of one rank with the rate left alone, 0.95 times with it scaled.
WORSE = 2


def _options(mended: bool) -> list[str]:
    import data_prep

    digits = data_prep.digits.prepare(DATA / "digits", quiet=True)
    channels = ["--training", str(digits / "training"), "--test", str(digits / "test")]
    return channels + ["--mended"] * mended


def _deadline() -> float:
    return time.monotonic() + LIMIT_SECONDS


def rank_dies(mended: bool) -> Seen:
    """torchrun, then mpirun: both end the other rank. Mended: torchrun starts both again."""
    options = _options(False)
    if mended:
        done = run(torchrun("rank_dies", *options, restarts=1), _deadline())
        ends = [one for one in done.events("end") if one["restarts"] == 1]
        return Seen(done.code != 0 or len(ends) != 2, done.first('"restarts": 1'))
    first = run(torchrun("rank_dies", *options), _deadline())
    second = run(mpirun("rank_dies", *options), _deadline())
    lines = [first.first(r"Signal 9 \(SIGKILL\)|exitcode\s*: -9"), second.first(r"signal 9")]
    failed = all(lines) and not any(one.events("end") or not one.code for one in (first, second))
    return Seen(failed, f"torchrun: {lines[0].strip()}  mpirun: {lines[1].strip()}")


def rank_hangs(mended: bool) -> Seen:
    """Both ranks wait. Their stacks tell where; gloo's timeout ends them."""
    with tempfile.TemporaryDirectory(prefix="workshop-breaking-") as folder:
        command = mpirun("rank_hangs", *_options(mended), "--save-to", folder)
        deadline = _deadline()
        with Program(command) as program:
            if not mended:
                program.until(deadline, lambda: len(program.events("rank")) == 2)
                asked = _ask_where(program, deadline)
            done = program.end(deadline)
    if mended:
        return Seen(done.code != 0 or len(done.events("end")) != 2, done.first('"end"'))
    timed_out = done.first(r"Timed out waiting \d+ms")
    where = done.first(r"line \d+ in wait_for$")
    failed = asked and bool(timed_out and where) and done.code not in (0, None)
    return Seen(failed, f"{_short(where)}  and then: {_short(timed_out)}")


def _ask_where(program: Program, deadline: float) -> bool:
    """Ask rank 1, until it waits, for its stack (`kill -USR1 PID`)."""
    (pid,) = [one["pid"] for one in program.events("rank") if one["rank"] == 1]
    while time.monotonic() < deadline:
        try:
            os.kill(pid, signal.SIGUSR1)
        except ProcessLookupError:
            return False
        soon = min(deadline, time.monotonic() + 1)
        if program.until(soon, lambda: _waiting(program)) and _waiting(program):
            return True
    return False


def _waiting(program: Program) -> bool:
    return any(line.endswith("in wait_for") for line in list(program.lines))


def mismatched_shapes(mended: bool) -> Seen:
    """DDP compares the shapes of all ranks before it trains."""
    done = run(mpirun("mismatched_shapes", *_options(mended)), _deadline())
    return _ended(done, r"params\[\d+\] in this process with sizes .* not to match", mended)


def _ended(done: Ended, pattern: str, mended: bool) -> Seen:
    """For a mistake that ends the ranks with a message."""
    if mended:
        return Seen(done.code != 0 or len(done.events("end")) != 2, done.first('"event": "end"'))
    line = done.first(pattern)
    return Seen(bool(line) and done.code not in (0, None), _short(line))


def forgotten_broadcast(mended: bool) -> Seen:
    """No rank fails. The hashes of the weights differ, from the first step to the last."""
    done = run(mpirun("forgotten_broadcast", *_options(mended)), _deadline())
    told = sorted(done.events("evidence"), key=lambda one: one["rank"])
    if len(told) != 2 or done.code != 0:
        return Seen(mended, done.lines[-1] if done.lines else "")
    ends = [one["weights_at_end"][:12] for one in told]
    line = f'"weights_at_end" of rank 0: {ends[0]}..., of rank 1: {ends[1]}...'
    return Seen(ends[0] != ends[1], line)


def forgotten_set_epoch(mended: bool) -> Seen:
    """No rank fails. The images come in the same order in both epochs."""
    options = ["--global-batch-size", 256]
    done = run(mpirun("forgotten_set_epoch", *_options(mended), *options), _deadline())
    orders = [one["images_in_order"] for one in done.events("order") if one["rank"] == 0]
    if len(orders) != 2 or done.code != 0:
        return Seen(mended, done.lines[-1] if done.lines else "")
    line = f'"images_in_order" of epoch 1: {orders[0]}, of epoch 2: {orders[1]}'
    return Seen(orders[0] == orders[1], line)


def lr_not_scaled(mended: bool) -> Seen:
    """No rank fails. After as many epochs the loss of two ranks is higher than that of one."""
    options = ["--epochs", LR_EPOCHS, "--learning-rate", 0.1]
    alone = mpirun("lr_not_scaled", *_options(False), *options, ranks=1)
    two = mpirun("lr_not_scaled", *_options(mended), *options)
    found = list(run_together([alone, two], _deadline()))
    losses = [[one["train_loss"] for one in done.events("loss")] for done in found]
    if any(len(one) != LR_EPOCHS for one in losses):
        return Seen(mended, next((done.lines[-1] for done in found if done.lines), ""))
    last = [one[-1] for one in losses]
    line = f'"train_loss" after {LR_EPOCHS} epochs: 1 rank {last[0]}, 2 ranks {last[1]}'
    return Seen(last[1] > WORSE * last[0], line)


def ranks_overwrite(mended: bool) -> Seen:
    """Two ranks write to one file, until one of them reads half of it."""
    with tempfile.TemporaryDirectory(prefix="workshop-breaking-") as folder:
        options = ["--hidden-units", 2000, "--save-to", Path(folder)]
        done = run(mpirun("ranks_overwrite", *_options(mended), *options), _deadline())
    broken = done.events("broken")
    if mended:
        return Seen(bool(broken) or len(done.events("end")) != 2, done.first('"event": "end"'))
    line = f"save {broken[0]['save']}: {broken[0]['error']}" if broken else ""
    return Seen(bool(broken), _short(line))


def _short(line: str, limit: int = 200) -> str:
    line = line.strip().replace(f"{SCRIPTS.parent}/", "")  # this machine's folders tell nothing
    return line if len(line) <= limit else line[: limit - 3] + "..."
