"""Run one notebook with papermill, in this environment's Python."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from workshop.jobs.lesson_jobs import check_parameters, parameters_of

ERROR_LINES = 8
MAX_BYTES = 96  # of the folder of a kernel's sockets: "/ipc-5" comes to it, 103 are allowed
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


class NotebookFailed(Exception):
    """A cell failed; the message names notebook and cell, and has the error's last lines."""


class _SavedAtTheEnd(NBClientEngine):
    """Writes the copy once; papermill's own checks and writes it before and after each cell."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, **options):
        path, nb_man.output_path = nb_man.output_path, None
        try:
            return super().execute_managed_notebook(nb_man, kernel_name, **options)
        finally:
            nb_man.output_path = path


papermill_engines.register("saved_at_the_end", _SavedAtTheEnd)


@contextlib.contextmanager
def _sockets() -> Iterator[Config]:
    """Where a kernel is reached: files in a folder of its own, and no ports, which others take."""
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        address = {"transport": "ipc", "ip": str(Path(folder, "ipc"))}
        short = len(os.fsencode(folder)) <= MAX_BYTES
        yield Config({"KernelManager": address} if short else {})


class _LastCell:
    """The cell that runs, or that failed; nbclient tells."""

    def __init__(self) -> None:
        self.number, self.source, self.error = 0, "", ""

    def started(self, cell, cell_index: int) -> None:
        self.number += cell.cell_type == "code"
        self.source = cell.source

    def failed(self, cell, cell_index: int, execute_reply: dict) -> None:
        content = execute_reply["content"]
        self.error = f"{content['ename']}: {content['evalue']}"


def execute(
    notebook: Path,
    copy: Path,
    parameters: dict,
    cell_seconds: int | None = None,
    kernel: str = "python3",
    progress: bool = False,
) -> float:
    """Run a notebook and write its executed copy, a failed one too; returns the seconds it took.

    parameters: override those of the cell tagged `parameters`. cell_seconds: limit for one cell.
    kernel: its name; python3 is this environment's own. progress: a bar at a terminal. Raises
    WrongParameter, NotebookFailed. An interrupt leaves neither a copy nor a kernel.
    """
    check_parameters(notebook.name, parameters, parameters_of(notebook))
    prefer_own_kernel()
    copy.parent.mkdir(parents=True, exist_ok=True)
    partial = copy.with_name(f".partial-{copy.name}")
    last, began = _LastCell(), time.monotonic()
    try:
        with _sockets() as sockets:
            papermill.execute_notebook(
                str(notebook),
                str(partial),
                parameters,
                kernel_name=kernel,
                engine_name="saved_at_the_end",
                cwd=str(notebook.parent),
                # disable=None: no bar where there is no terminal
                progress_bar=progress and {"desc": notebook.stem, "leave": False, "disable": None},
                execution_timeout=cell_seconds,
                on_cell_start=last.started,
                on_cell_error=last.failed,
                extra_arguments=["--log-level=ERROR"],  # it warns of TCP, which stays on loopback
                config=sockets,
            )
        partial.replace(copy)
    except (PapermillExecutionError, CellTimeoutError, DeadKernelError) as error:
        if partial.exists():
            partial.replace(copy)
        raise NotebookFailed(_describe(notebook, last, error, cell_seconds)) from error
    finally:
        partial.unlink(missing_ok=True)
    return time.monotonic() - began


def _describe(notebook: Path, last: _LastCell, error: Exception, cell_seconds: int | None) -> str:
    """Which cell of which notebook failed, and the error's last lines.

    The cell's number is the one in brackets in the executed copy.
    """
    if isinstance(error, CellTimeoutError):
        text = f"It took more than {cell_seconds} s, the limit for one cell."
    elif isinstance(error, DeadKernelError):
        text = "The notebook's Python process ended unexpectedly (out of memory?)."
    else:
        # Not papermill's error: that one is empty where the notebook has drawn its own.
        text = COLOURS.sub("", last.error or str(error)).strip()
    lines = text.splitlines()
    shown = "\n".join(f"    {line}" for line in lines[:1] + lines[1:][-ERROR_LINES:])
    first = next((line.strip() for line in last.source.splitlines() if line.strip()), "")
    return f"{notebook.name}, cell [{last.number}] failed: {first}\n{shown}"


def prefer_own_kernel() -> None:
    """A kernel that the user once installed under the name python3 must not be taken."""
    jupyter = str(Path(sys.prefix) / "share" / "jupyter")
    paths = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    os.environ["JUPYTER_PATH"] = os.pathsep.join(
        [jupyter, *(p for p in paths if p and p != jupyter)]
    )
    # A notebook starts mpirun and friends by name: this environment's come first.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    here = str(Path(sys.executable).parent)
    if folders[:1] != [here]:
        os.environ["PATH"] = os.pathsep.join([here, *folders])
