"""Ranks for a notebook: processes of this machine that wait for functions to run.

    ranks = workshop.start_ranks(4)
    ranks.run(function, argument)       # function(argument) on all four at once; four results
    ranks.stop()

This is the notebook's side; rank_process.py is what each process runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import weakref
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import cloudpickle

from workshop.launch.processes import INTERFACE, Interrupted, Processes, ProcessFailed
from workshop.paths import DEMOS

START_SECONDS = 120  # importing torch takes seconds each, more on a busy machine
STACK_SECONDS = 0.5  # in which a rank that hangs writes its stack, even if it has no core
GRACE_SECONDS = 1.0  # after one rank's error: the others' errors, if any, belong to the message


class RankFailed(ProcessFailed):
    """A rank raised, died or never came back; the message says which one, where and why."""


class Ranks:
    """Processes of this machine that form one torch.distributed group (gloo).

    Attributes: world_size, how many. More ranks than cores share them.

    They end with `stop()`, or with the notebook. After a failure they are all ended, because a rank
    that waits for a lost one waits for ever. The next `run` starts new ones: what a function kept
    in the old ones is gone.
    """

    def __init__(self, world_size: int) -> None:
        if not 1 <= world_size <= 64:
            raise ValueError(f"world_size is {world_size}; 1 to 64 processes can be started.")
        self.world_size = world_size
        self._group: _Group | None = None
        self._start()

    def run(self, function: Callable | str, *args, timeout: float = 60) -> list:
        """Call function(*args) on every rank at the same time; return the results by rank.

        Args:
            function: of the notebook, or "folder.module:name" of a file in scripts/demos/. In it,
                `torch.distributed` is ready: get_rank(), all_reduce() and the rest. What it
                prints is shown with the rank in front. A tensor that it returns arrives as
                a numpy array.
            timeout: seconds after which ranks that have not returned are given up.

        Raises:
            RankFailed: a rank raised an error, died, or did not return in time.
        """
        return self._call(function, [args] * self.world_size, timeout)

    def run_each(self, function: Callable | str, parts: Sequence, *args, timeout: float = 60):
        """Like `run`, but rank r calls function(parts[r], *args)."""
        if len(parts) != self.world_size:
            raise ValueError(f"{len(parts)} parts for {self.world_size} ranks: one each is needed.")
        return self._call(function, [(part, *args) for part in parts], timeout)

    def seconds(
        self, function: Callable | str, *args, repeats: int = 7, timeout: float = 60
    ) -> list[float]:
        """Time function(*args): the slowest rank's seconds of each repeat, after a warm-up.

        All ranks begin a repeat together.
        """
        call = ("seconds", function, args, repeats)
        by_rank = self._exchange([call] * self.world_size, timeout)
        return [max(seconds) for seconds in zip(*by_rank, strict=True)]

    def stop(self) -> None:
        """End the processes. Harmless if they have ended."""
        if self._group is not None:
            self._group.end()
            self._group = None

    @property
    def pids(self) -> list[int | None]:
        """The processes' ids, by rank; none after a failure or `stop`."""
        return self._group.processes.pids if self._group else []

    @property
    def record(self) -> Path | None:
        """Where the processes note what they do, for `workshop.why`; None after a failure."""
        return self._group.processes.record if self._group else None

    def __enter__(self) -> Ranks:
        return self

    def __exit__(self, *_) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Ranks(world_size={self.world_size}, pids={self.pids})"

    def _start(self) -> None:
        group = self._group = _Group(self.world_size)
        self._guarded(lambda: group.gather(START_SECONDS))  # each says that it is ready

    def _call(self, function, arguments: list[tuple], timeout: float) -> list:
        return self._exchange([("call", function, of_rank) for of_rank in arguments], timeout)

    def _exchange(self, messages: list[tuple], timeout: float) -> list:
        packed = [cloudpickle.dumps(message) for message in messages]
        if self._group is None:
            self._start()
        group = self._group
        assert group is not None

        def there_and_back() -> list:
            for connection, message in zip(group.connections, packed, strict=True):
                connection.send_bytes(message)
            return group.gather(timeout)

        return self._guarded(there_and_back)

    def _guarded(self, action: Callable[[], list]) -> list:
        """Run the action; stop all ranks after any error or interrupt."""
        try:
            return action()
        except BaseException as error:
            self.stop()
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted from None
            raise


start_ranks = Ranks  # as `workshop.start_ranks`


class _Group:
    """The processes of one start, and a connection to each."""

    def __init__(self, world_size: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="workshop-ranks-"))
        pairs = [socket.socketpair() for _ in range(world_size)]
        self.connections = [Connection(ours.detach()) for ours, _ in pairs]
        descriptors = [[theirs.fileno()] for _, theirs in pairs]
        module = [sys.executable, "-m", "workshop.launch.rank_process"]
        self.processes = Processes(
            [[*module, descriptor, self.folder] for (descriptor,) in descriptors],
            {
                "WORLD_SIZE": world_size,
                "LOCAL_WORLD_SIZE": world_size,
                "OMP_NUM_THREADS": 1,
                "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME", INTERFACE),
                "PYTHONPATH": os.pathsep.join([str(DEMOS), *filter(None, sys.path)]),
            },
            each=[{"RANK": rank, "LOCAL_RANK": rank} for rank in range(world_size)],
            descriptors=descriptors,
            captured=False,
        )
        for _, theirs in pairs:
            theirs.close()
        # However the notebook ends, the processes and the folder go with it.
        self.end = weakref.finalize(self, _end, self.processes, self.connections, self.folder)

    def gather(self, timeout: float) -> list:
        """Wait for one answer of each rank; show what they print meanwhile."""
        answers: dict[int, Any] = {}
        errors: dict[int, str] = {}
        deadline = time.monotonic() + timeout
        while len(answers) + len(errors) < len(self.connections):
            waiting = [r for r in range(len(self.connections)) if r not in answers | errors]
            left = max(0.0, deadline - time.monotonic())
            ready = wait([self.connections[rank] for rank in waiting], left)
            if not ready:
                break
            for rank in waiting:
                if self.connections[rank] in ready:
                    self._receive(rank, answers, errors)
            if errors:
                deadline = min(deadline, time.monotonic() + GRACE_SECONDS)
        if errors:
            raise RankFailed("\n".join(errors[rank] for rank in sorted(errors)))
        if len(answers) < len(self.connections):
            raise RankFailed(
                self._hang(sorted(set(range(len(self.connections))) - set(answers)), timeout)
            )
        return [answers[rank] for rank in range(len(self.connections))]

    def _receive(self, rank: int, answers: dict, errors: dict) -> None:
        try:
            kind, value = cloudpickle.loads(self.connections[rank].recv_bytes())
        except (EOFError, ConnectionError):
            statuses = self.processes.statuses
            self.processes.until(lambda: statuses[rank] is not None, GRACE_SECONDS)
            status = statuses[rank]
            how = f"signal {-status}" if status and status < 0 else f"exit status {status}"
            errors[rank] = f"rank {rank}: its process died ({how})."
            return
        if kind == "print":
            print(f"[{rank}] {value}", flush=True)
        elif kind == "result":
            answers[rank] = value
        else:
            errors[rank] = f"rank {rank}: {value}"

    def _hang(self, ranks: list[int], timeout: float) -> str:
        """Name the ranks that did not return, and the caller's line where each is."""
        places = []
        for pid in filter(None, map(self.processes.pids.__getitem__, ranks)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGUSR1)  # it writes its stack
        stacks = [self.folder / f"stack-{rank}" for rank in ranks]
        deadline = time.monotonic() + STACK_SECONDS
        while time.monotonic() < deadline and not all(map(_is_written, stacks)):
            time.sleep(0.02)
        for rank, path in zip(ranks, stacks, strict=True):
            stack = _callers_lines(path.read_text()) if path.is_file() else ""
            places.append(f"rank {rank}:\n{stack.rstrip() or '  (its stack is not known)'}")
        who = ", ".join(map(str, ranks))
        return (
            f"After {timeout:g} s rank {who} had not returned. A collective operation returns "
            "when every rank has called it with the same size; a send or receive, when the other "
            "side has. They are here, last call first:\n" + "\n".join(places)
        )


def _is_written(stack: Path) -> bool:
    """Whether the whole stack is in the file: its last line is of the module that runs a rank."""
    return stack.is_file() and stack.read_text().rstrip().endswith("in _run_module_as_main")


def _callers_lines(stack: str) -> str:
    """A stack without the frames of rank_process.py."""
    return "\n".join(
        line
        for line in stack.splitlines()
        if "/workshop/launch/rank_process.py" not in line and "<frozen runpy>" not in line
    )


def _end(processes: Processes, connections: list[Connection], folder: Path) -> None:
    for connection in connections:
        connection.close()
    processes.end()
    shutil.rmtree(folder, ignore_errors=True)
