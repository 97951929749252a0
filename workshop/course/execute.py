"""Run one notebook with papermill, in this environment's Python."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import papermill
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.engines import NBClientEngine, papermill_engines
from papermill.exceptions import PapermillExecutionError

from workshop.course.parameters import UnknownParameter, WrongParameter, check

__all__ = ["NotebookFailed", "UnknownParameter", "WrongParameter", "check_parameters", "execute"]

ENGINE = "workshop"
ERROR_LINES = 8
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# (cells done, code and text cells together; cells in all)
Progress = Callable[[int, int], None]


class NotebookFailed(Exception):
    """A cell failed; the message names notebook and cell, and has the error's last lines."""


@dataclass(frozen=True)
class Executed:
    """A notebook that ran to its end. path: the executed copy."""

    path: Path
    seconds: float


class _Watch:
    """Notes which cell runs, and tells how far the notebook is."""

    def __init__(self, tell: Progress) -> None:
        self.tell, self.number, self.source, self.error = tell, 0, "", ""

    def attach(self, nb_man) -> None:
        """Put this around what papermill does at a cell's start and at its failure."""
        inner, cells = nb_man.cell_start, len(nb_man.nb.cells)
        failed = nb_man.cell_exception

        def cell_start(cell, cell_index=None, **more):
            self.number += cell.cell_type == "code"
            self.source = cell.source
            self.tell(cell_index, cells)
            inner(cell, cell_index=cell_index, **more)

        def cell_exception(cell, cell_index=None, exception=None, **more):
            self.error = f"{exception.ename}: {exception.evalue}"
            failed(cell, cell_index=cell_index, exception=exception, **more)

        nb_man.cell_start, nb_man.cell_exception = cell_start, cell_exception


class _Engine(NBClientEngine):
    """papermill's own engine, watched."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, watch: _Watch, **kwargs):
        watch.attach(nb_man)
        return super().execute_managed_notebook(nb_man, kernel_name, **kwargs)


papermill_engines.register(ENGINE, _Engine)


def check_parameters(notebook: Path, parameters: dict) -> None:
    """Check names and values against those of the notebook's parameters cell.

    Raises UnknownParameter for a name that it does not set; WrongParameter for a value of another
    type than the cell's own, for a number that is none, and for one below 0.
    """
    known = papermill.inspect_notebook(str(notebook))
    check(notebook.name, parameters, {name: one["default"] for name, one in known.items()})


def execute(
    notebook: Path,
    copy: Path,
    parameters: dict,
    tell: Progress = lambda done, cells: None,
    cell_seconds: int | None = None,
    kernel: str = "python3",
) -> Executed:
    """Run a notebook and write its executed copy, a failed one too.

    parameters: override those of the cell tagged `parameters`. cell_seconds: limit for one
    cell. kernel: its name; python3 is this environment's own. Raises UnknownParameter,
    NotebookFailed. An interrupt leaves no copy and no kernel.
    """
    check_parameters(notebook, parameters)
    prefer_own_kernel()
    copy.parent.mkdir(parents=True, exist_ok=True)
    partial = copy.with_name(f".partial-{copy.name}")
    watch, began = _Watch(tell), time.monotonic()
    try:
        papermill.execute_notebook(
            str(notebook),
            str(partial),
            parameters,
            engine_name=ENGINE,
            kernel_name=kernel,
            cwd=str(notebook.parent),
            progress_bar=False,
            execution_timeout=cell_seconds,
            watch=watch,
            extra_arguments=["--log-level=ERROR"],  # it warns of TCP, which stays on loopback
        )
        partial.replace(copy)
    except (PapermillExecutionError, CellTimeoutError, DeadKernelError) as error:
        if partial.exists():
            partial.replace(copy)
        raise NotebookFailed(_describe(notebook, watch, error, cell_seconds)) from error
    finally:
        partial.unlink(missing_ok=True)
    return Executed(copy, time.monotonic() - began)


def _describe(notebook: Path, watch: _Watch, error: Exception, cell_seconds: int | None) -> str:
    """Which cell of which notebook failed, and the error's last lines.

    The cell's number is the one in brackets in the executed copy.
    """
    if isinstance(error, CellTimeoutError):
        text = f"It took more than {cell_seconds} s, the limit for one cell."
    elif isinstance(error, DeadKernelError):
        text = "The notebook's Python process ended in the middle (out of memory?)."
    else:
        # Not papermill's error: that one is empty where the notebook has drawn its own.
        text = COLOURS.sub("", watch.error or str(error)).strip()
    lines = text.splitlines()
    said = "\n".join(f"    {line}" for line in lines[:1] + lines[1:][-ERROR_LINES:])
    first = next((line.strip() for line in watch.source.splitlines() if line.strip()), "")
    return f"{notebook.name}, cell [{watch.number}] failed: {first}\n{said}"


def prefer_own_kernel() -> None:
    """A kernel that the user once installed under the name python3 must not be taken."""
    own = str(Path(sys.prefix) / "share" / "jupyter")
    paths = os.environ.get("JUPYTER_PATH", "").split(os.pathsep)
    os.environ["JUPYTER_PATH"] = os.pathsep.join([own, *(p for p in paths if p and p != own)])
    # A notebook starts mpirun and friends by name: this environment's come first.
    found = os.environ.get("PATH", "").split(os.pathsep)
    here = str(Path(sys.executable).parent)
    if found[:1] != [here]:
        os.environ["PATH"] = os.pathsep.join([here, *found])
