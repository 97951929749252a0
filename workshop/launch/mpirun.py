"""`mpirun` from a notebook: start ranks on this machine, see what each says, leave nothing behind.

    from workshop.mpirun import mpirun

    done = mpirun(2, "python", "-c", "print('hello')")      # shows [0] hello, [1] hello
    done = mpirun(2, "scripts/train.py", "--epochs", 1, show=False)
    done.table("epoch")                                     # the JSON records that it printed

Between the notebook and mpirun stands one more process (workshop/guard.py). It ends mpirun and
every rank when the notebook asks for it and when the notebook is gone, even killed.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property

from workshop.events import event
from workshop.guard import GRACE_SECONDS, start_guarded
from workshop.mpirun_command import as_typed, mpirun_command, words_of

TAG = re.compile(r"\[\d+,(\d+)\]<std(out|err)>: ?(.*)", re.DOTALL)
FIRST_TO_FAIL = re.compile(r"Process name: \[[^\]]*,(\d+)\]\s+Exit code:\s+(\d+)")
KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+\s+exited on\s+signal (\d+)")
LAST_LINES = 8


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
        said = [line for line in self.lines if line.rank is not None]
        found = [(line.rank, event(line.text)) for line in said]
        return [{"rank": rank} | record for rank, record in found if record]

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
    return Running(ranks, words_of(command), environment)


class Running:
    """mpirun and its ranks, while they run.

    shown: the command as one would type it. short: the same without mpirun's options.
    """

    def __init__(self, ranks: int, words: list[str], environment: dict) -> None:
        if not 1 <= ranks <= 64:
            raise ValueError(f"ranks is {ranks}; 1 to 64 processes can be started.")
        self.ranks, self.lines = ranks, []
        full = mpirun_command(ranks, words)
        self.shown = as_typed(full, environment)
        self.short = as_typed([*full[:3], *words], environment)
        self._arrived = threading.Condition()
        self._began = time.monotonic()
        self._guard = start_guarded(full, environment)
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
