"""Run a function on several ranks: forked processes of this machine, in one gloo group.

    results = run(4, function, argument)      # function(wire, argument) on each; results by rank

The student's modules are imported in the ranks only, after wire.py has taken its place below them.
Whatever they do, `run` returns or fails in `seconds` after the imports, and leaves no process.
"""

import faulthandler
import gc
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

from harness.wire import Wire

SECONDS = 12.0  # a rank's; whoever is not back by then waits for what never comes
IMPORT_SECONDS = 40.0  # before; many ranks import slowly on few cores
BROKEN = re.compile(r"(reset|closed) by peer|its process died")
UNEQUAL = (
    "A rank's process ended, most likely in an exchange: two ranks exchanged different numbers of "
    "bytes. Do all ranks make the same exchanges, of the same sizes and types, in the same order?\n"
)
GRACE = 1.0  # after one rank's error: the others' errors, if any, belong to the message
SUBMISSION = Path(os.environ.get("PROJECT_SUBMISSION", Path(__file__).parents[2])).resolve()
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
            results, errors = _gather(ranks, seconds)
            late = [] if errors else sorted(set(range(world_size)) - results.keys())
            stacks = [(Path(folder) / f"stack-{rank}").read_text() for rank in late]
        finally:
            for process in processes:
                process.kill()
                process.join()
    if errors:
        first, *others = sorted(errors)
        cause = UNEQUAL if any(map(BROKEN.search, errors.values())) else ""
        also = f"\n(also wrong: rank {', '.join(map(str, others))})" if others else ""
        text = f"{world_size} ranks, rank {first}: {errors[first]}{also}"
        pytest.fail(cause + text, pytrace=False)
    if late:
        places = zip(late, map(_places, stacks), strict=True)
        pytest.fail(
            f"{world_size} ranks: after {seconds:g} s these had not returned. A send returns when "
            "the other side receives it, and a receive when the other side sends as many bytes. "
            "Keep the request of each isend and irecv, and wait() for it."
            + "".join(f"\n  rank {rank} {place}" for rank, place in places),
            pytrace=False,
        )
    return [results[rank] for rank in range(world_size)]


def _gather(ranks: dict[Connection, int], seconds: float) -> tuple[dict, dict]:
    """The results and errors of the ranks that come back in time."""
    results: dict[int, object] = {}
    errors: dict[int, str] = {}
    pending, importing = dict(ranks), set(ranks)
    deadline = time.monotonic() + IMPORT_SECONDS + GRACE
    while pending and (ready := wait(list(pending), max(0.0, deadline - time.monotonic()))):
        for connection in ready:
            try:
                kind, value = connection.recv()
            except (EOFError, ConnectionError):
                kind, value = "error", "its process died."
            if kind == "imported":
                importing.remove(connection)
                if not importing:
                    deadline = time.monotonic() + seconds + GRACE
                continue
            rank = pending.pop(connection)
            (errors if kind == "error" else results)[rank] = value
        if errors:
            deadline = min(deadline, time.monotonic() + GRACE)
    return results, errors


def _places(stack: str) -> str:
    """Where the student's code is, by a stack of faulthandler's: in each thread its last call."""
    places = []
    for thread in re.split(r"\n(?=Thread|Current thread)", stack):
        frames = [(path, int(line), name) for path, line, name in FRAME.findall(thread)]
        own_frames = [frame for frame in frames if _is_students(frame[0])]
        if own_frames:
            path, line, name = own_frames[0]
            source = linecache.getline(path, line).strip()
            places.append(f"{Path(path).name}:{line} in {name}: {source}")
    if not places:
        return "has returned from your code"
    return "is at " + "; in another thread at ".join(reversed(dict.fromkeys(places)))


def _is_students(path: str) -> bool:
    return SUBMISSION in Path(path).parents and Path(__file__).parents[1] not in Path(path).parents


def _be_rank(folder, rank, world_size, seconds, connection, wire_options, function, arguments):
    gc.freeze()  # what the rank makes is looked through later, and torch's objects are not
    faulthandler.disable()  # pytest's prints pages about a process that gloo aborts
    stack = (folder / f"stack-{rank}").open("w")
    faulthandler.dump_traceback_later(IMPORT_SECONDS, file=stack)
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    sys.path.insert(0, str(SUBMISSION))
    torch.manual_seed(rank)  # whoever forgets a broadcast has other weights on each rank
    try:
        store = f"file://{folder / 'store'}"
        dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)
        wire = Wire(**wire_options)
        import adapters  # noqa: F401

        connection.send(("imported", None))
        faulthandler.dump_traceback_later(seconds, file=stack)  # who hangs stays, for the others
        answer = ("result", function(wire, *arguments))
        files = [str(getattr(module, "__file__", "")) for module in [*sys.modules.values()]]
        lessons = ", ".join(file for file in files if "scripts/demos/" in file)
        assert not lessons, f"your code imports {lessons}: read it, then write your own."
    except AssertionError as error:
        text, *_ = str(error).split("\nassert ")  # pytest adds the condition
        answer = ("error", text or _error_text(error))
    except Exception as error:
        answer = ("error", _error_text(error))
    connection.send(answer)
    time.sleep(10 * seconds)  # who ends takes the others' connections along: `run` ends all


def _error_text(error: Exception) -> str:
    """The error, and the lines of the student's code that led to it, last call last."""
    frames = traceback.extract_tb(error.__traceback__)
    own_frames = [frame for frame in frames if _is_students(frame.filename)] or frames[-1:]
    lines = [f"\n  {Path(f.filename).name}:{f.lineno} in {f.name}: {f.line}" for f in own_frames]
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error}{notes}{''.join(lines)}"
