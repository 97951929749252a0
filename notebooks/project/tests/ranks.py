"""Run a function on several ranks: forked processes of this machine, in one gloo group.

    results = run(4, function, argument)      # function(wire, argument) on each; results by rank

The student's modules are imported in the ranks only, after wire.py has taken its place below them.
Whatever they do, `run` returns or fails in `seconds` and a few more, and leaves no process.
"""

import faulthandler
import linecache
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from wire import Wire

SECONDS = 12.0  # a rank's; whoever is not back by then waits for what never comes
GRACE = 1.0  # after one rank's error: the others' errors, if any, belong to the message
SUBMISSION = Path(os.environ.get("PROJECT_SUBMISSION", Path(__file__).parents[1])).resolve()
FRAME = re.compile(r'File "(.+)", line (\d+) in (\S+)')

torch.set_num_threads(1)  # threads do not survive a fork, and there are more ranks than cores


def run(
    world_size: int, function: Callable, *arguments, seconds: float = SECONDS, **wire_options
) -> list:
    """Return function(wire, *arguments) of each rank; fail the test with their errors.

    wire_options: see wire.Wire.
    """
    context = multiprocessing.get_context("fork")
    processes, ranks = [], {}
    with tempfile.TemporaryDirectory(prefix="project-") as folder:
        for rank in range(world_size):
            ours, theirs = context.Pipe()
            job = (Path(folder), rank, world_size, seconds, theirs, wire_options)
            processes.append(context.Process(target=_be_rank, args=(*job, function, arguments)))
            processes[-1].start()
            theirs.close()
            ranks[ours] = rank
        try:
            results, errors = _gather(ranks, Path(folder), seconds)
        finally:
            for process in processes:
                process.kill()
                process.join()
    if errors:
        pytest.fail(_message(errors, world_size, seconds), pytrace=False)
    return [results[rank] for rank in range(world_size)]


def _gather(ranks: dict[Connection, int], folder: Path, seconds: float) -> tuple[dict, dict]:
    results, errors, pending = {}, {}, dict(ranks)
    deadline = time.monotonic() + seconds + 3 * GRACE
    while pending and (ready := wait(list(pending), max(0.0, deadline - time.monotonic()))):
        for connection in ready:
            rank = pending.pop(connection)
            try:
                error, value = connection.recv()
            except (EOFError, ConnectionError):  # it wrote its stack and ended, or died
                stack = folder / f"stack-{rank}"
                error, value = (1, _places(stack.read_text())) if stack.exists() else (0, None)
                error, value = (error, value) if value else (2, "its process died.")
            (errors if error else results)[rank] = (error, value) if error else value
        if any(error == 2 for error, _ in errors.values()):
            deadline = min(deadline, time.monotonic() + GRACE)
    return results, errors


def _message(errors: dict[int, tuple[int, str]], world_size: int, seconds: float) -> str:
    raised = {rank: text for rank, (error, text) in errors.items() if error == 2}
    if raised:
        first, *others = sorted(raised)
        also = f"\n(also wrong: rank {', '.join(map(str, others))})" if others else ""
        return f"{world_size} ranks, rank {first}: {raised[first]}{also}"
    places = "\n".join(f"  rank {rank} is at {errors[rank][1]}" for rank in sorted(errors))
    return (
        f"{world_size} ranks: after {seconds:g} s these had not returned. A send returns when the "
        "other side receives it, and a receive when the other side sends as many bytes.\n" + places
    )


def _places(stack: str) -> str | None:
    """The innermost line of the student's code in each thread of a stack of faulthandler's."""
    places = []
    for thread in re.split(r"\n(?=Thread|Current thread)", stack):
        frames = [(path, int(line), name) for path, line, name in FRAME.findall(thread)]
        own_frames = [frame for frame in frames if _is_students(frame[0])]
        if own_frames:
            path, line, name = own_frames[0]
            source = linecache.getline(path, line).strip()
            places.append(f"{Path(path).name}:{line} in {name}: {source}")
    if places:
        return "; in another thread at ".join(reversed(dict.fromkeys(places)))
    return "no line of your code" if stack else None


def _is_students(path: str) -> bool:
    return SUBMISSION in Path(path).parents and Path(__file__).parent not in Path(path).parents


def _be_rank(folder, rank, world_size, seconds, connection, wire_options, function, arguments):
    stack = (folder / f"stack-{rank}").open("w")
    faulthandler.dump_traceback_later(seconds, exit=True, file=stack)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    sys.path.insert(0, str(SUBMISSION))
    torch.manual_seed(rank)  # whoever forgets a broadcast has other weights on each rank
    try:
        store = f"file://{folder / 'store'}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)
        answer = (0, function(Wire(**wire_options), *arguments))
    except AssertionError as error:
        answer = (2, str(error) if error.args else _error_text(error))
    except Exception as error:
        answer = (2, _error_text(error))
    connection.send(answer)
    time.sleep(10 * seconds)  # who ends takes the others' connections along: `run` ends all


def _error_text(error: Exception) -> str:
    """The error, and the lines of the student's code that led to it, last call last."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if _is_students(frame.filename)] or frames[-1:]
    lines = [f"\n  {Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in own_frames]
    return f"{type(error).__name__}: {error}{''.join(lines)}"
