"""Run a tool with its output in a log, one line of progress, and an error that helps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Settings of the surrounding shell, make or environment that must not leak into a tool.
FOREIGN = (
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
)
PROGRESS_SECONDS = 20  # between two progress lines where the output is no terminal
TAIL_LINES = 25


class SetupError(Exception):
    """Something stopped the set-up. The text says what, and what to do."""


class StepFailed(SetupError):
    """A tool ended with an exit code other than 0. `log` has all it printed."""

    def __init__(self, title: str, code: int, log: Path, start: int) -> None:
        end = tail(log, start=start)
        super().__init__(f"{title}: exit code {code}. The end of {log}:\n{end}")
        self.log = log


def say(text: str) -> None:
    print(text, flush=True)


def tail(log: Path, lines: int = TAIL_LINES, start: int = 0) -> str:
    """The last lines of a log, indented; nothing from before byte `start`."""
    raw = log.read_bytes()[start:] if log.exists() else b""
    text = raw.decode(errors="replace")
    return "\n".join("    " + line for line in text.splitlines()[-lines:])


def clean_environment(**extra: str) -> dict[str, str]:
    """This process's environment without what belongs to another Python or to make."""
    environment = {k: v for k, v in os.environ.items() if k not in FOREIGN}
    environment.update(extra)
    return environment


def output_of(command: list[str], *, timeout: float = 60) -> str | None:
    """What a command prints, or None where it fails or does not exist."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(),
            timeout=timeout,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")


def run_step(
    title: str,
    command: list[str],
    *,
    log: Path,
    environment: dict[str, str],
    folder: Path | None = None,
) -> float:
    """Run a command, all output appended to `log`; return its seconds.

    The command gets a process group of its own, so that an interrupted set-up can end it
    with everything it started. Raises StepFailed when the exit code is not 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with log.open("ab") as output:
        begin = output.tell()
        output.write(f"$ {' '.join(command)}\n".encode())
        output.flush()
        process = None
        try:
            with ctrl_c_after():
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=environment,
                    cwd=str(folder) if folder else None,
                    start_new_session=True,
                )
            watch(process, title, log)
        except BaseException:
            if process is not None:
                end_group(process)
            raise
    seconds = time.monotonic() - started
    if process.returncode != 0:
        raise StepFailed(title, process.returncode, log, begin)
    say(f"  {title}: {seconds:.0f} s")
    return seconds


@contextmanager
def ctrl_c_after() -> Iterator[None]:
    """Hold a Ctrl-C back until the block is left.

    A process that Popen has started, but not yet returned, is one that nobody could end.
    """
    held: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held:
        raise KeyboardInterrupt


def watch(process: subprocess.Popen, title: str, log: Path) -> None:
    """Wait for a process; print how long it has been running."""
    start = time.monotonic()
    terminal = sys.stdout.isatty()
    next_line = start + PROGRESS_SECONDS
    while process.poll() is None:
        time.sleep(0.1)
        now = time.monotonic()
        if terminal:
            last = tail(log, 1).strip()[:60]
            print(f"\r\033[K  {title}: {now - start:.0f} s  {last}", end="", flush=True)
        elif now >= next_line:
            say(f"  {title}: {now - start:.0f} s so far")
            next_line += PROGRESS_SECONDS
    if terminal:
        print("\r\033[K", end="", flush=True)


def end_group(process: subprocess.Popen) -> None:
    """End a process and all it started: SIGTERM, 3 s, SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=3)
        except subprocess.TimeoutExpired:
            continue
