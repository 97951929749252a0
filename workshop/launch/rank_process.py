"""One rank: a process that joins its group, then runs what the notebook sends.

    python -m workshop.launch.rank_process FD FOLDER

FD: the socket to the notebook. FOLDER: where the ranks meet. RANK and WORLD_SIZE are set.
"""

from __future__ import annotations

import faulthandler
import io
import os
import pkgutil
import signal
import sys
import time
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle
import torch
import torch.distributed as dist


class LinesTo(io.TextIOBase):
    """A stream that sends whole lines to the notebook."""

    def __init__(self, send) -> None:
        self._send, self._rest = send, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._send(("print", line))
        return len(text)

    def finish(self) -> None:
        """Send the last, incomplete line."""
        if self._rest:
            self._send(("print", self._rest))
            self._rest = ""


def main() -> None:
    """Join the group, report it, and answer calls until the notebook closes the socket."""
    connection, folder = Connection(int(sys.argv[1])), Path(sys.argv[2])
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    stack = (folder / f"stack-{rank}").open("w")
    faulthandler.register(signal.SIGUSR1, file=stack, all_threads=False)
    torch.set_num_threads(1)
    store = f"file://{folder / 'store'}"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world_size)

    def send(message) -> None:
        connection.send_bytes(cloudpickle.dumps(message))

    sys.stdout = output = LinesTo(send)
    send(("result", None))
    while True:
        try:
            packed = connection.recv_bytes()
        except (EOFError, ConnectionError):
            os._exit(0)  # no orderly shutdown: another rank may be gone already
        answer = _answer(packed)
        try:
            output.finish()
            send(answer)
        except ConnectionError:
            os._exit(0)  # the notebook has given up waiting for this rank


def _answer(packed: bytes) -> tuple[str, object]:
    try:
        kind, function, arguments, *rest = cloudpickle.loads(packed)
        if isinstance(function, str):
            function = pkgutil.resolve_name(function)
        call = _timed if kind == "seconds" else _called
        return "result", call(function, arguments, *rest)
    except Exception:
        return "error", _error_text()


def _called(function, arguments):
    return _without_tensors(function(*arguments))


def _timed(function, arguments, repeats: int) -> list[float]:
    """Seconds of each repeat on this rank; the warm-up is not counted."""
    seconds = []
    for _ in range(repeats + 1):
        dist.barrier()
        began = time.perf_counter()
        function(*arguments)
        seconds.append(time.perf_counter() - began)
    return seconds[1:]


def _without_tensors(value):
    """Tensors as numpy arrays, in lists, tuples and dicts too: the notebook may lack torch."""
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    if isinstance(value, dict):
        return {key: _without_tensors(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_without_tensors, value))
    return value


def _error_text() -> str:
    """The error with the caller's lines of the traceback, without this file's."""
    kind, error, trace = sys.exc_info()
    frames = [frame for frame in traceback.extract_tb(trace) if frame.filename != __file__]
    message = "".join(traceback.format_exception_only(kind, error)).strip()
    return message + "\n" + "".join(traceback.format_list(frames)).rstrip()


if __name__ == "__main__":
    main()
