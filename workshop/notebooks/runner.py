"""Run lessons one after the other and write their pages. Leaves nothing running."""

from __future__ import annotations

import contextlib
import datetime
import signal
import time
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from workshop.jobs import local_server
from workshop.notebooks import page
from workshop.notebooks.execute import NotebookFailed, check_parameters, execute

CELL_SECONDS = {"local": 15 * 60, "aws": 60 * 60}


def run(
    notebooks: list[Path], out: Path, target: str, parameters: dict, console: Console | None = None
) -> bool:
    """Execute notebooks in order; stop at the first that fails.

    Writes out/NN_name.ipynb, out/NN_name.html and out/index.html. parameters: for each of the
    notebooks, besides `target`. Returns whether all ran to their end. Raises UnknownParameter
    and SessionError (a seat's name) before anything runs. An interrupt ends the kernel and the
    jobs that were started.
    """
    console = console or Console()
    from workshop.jobs.session import check_names  # boto3 comes with it

    parameters = {"target": target} | parameters
    for notebook in notebooks:
        check_parameters(notebook, parameters)
    if "seat" in parameters:
        check_names(target, parameters["seat"])
    out.mkdir(parents=True, exist_ok=True)
    _remove_earlier(notebooks, out)
    rows = {path.stem: page.Row(path.stem, "not run") for path in notebooks}
    with _terminated_is_interrupted(), _endpoint(target, console):
        began = datetime.datetime.now(datetime.UTC)
        try:
            good = _run_all(notebooks, out, target, parameters, rows, console)
        except KeyboardInterrupt:
            _stop_jobs(target, parameters, began, console)
            raise
        finally:
            index = page.write_index(out, list(rows.values()), target)
        if not good:
            _stop_jobs(target, parameters, began, console)
    console.print(f"Pages: {index}", soft_wrap=True)
    return good


def _run_all(notebooks, out, target, parameters, rows, console) -> bool:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f} {task.fields[unit]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        overall = progress.add_task("lessons", total=len(notebooks), unit="notebooks")
        for notebook in notebooks:
            bar = progress.add_task(notebook.stem, total=1, unit="cells")

            def tell(done: int, cells: int, bar=bar) -> None:
                progress.update(bar, completed=done, total=cells)

            copy, began = out / notebook.name, time.monotonic()
            try:
                done = execute(notebook, copy, parameters, tell, CELL_SECONDS[target])
            except NotebookFailed as error:
                spent = time.monotonic() - began
                row = rows[notebook.stem] = page.Row(notebook.stem, "failed", spent)
                if copy.exists():
                    page.write_html(copy, row, target, notebook.parent, rows)
                progress.stop()
                console.print(f"FAILED after {spent:.1f} s: {error}", markup=False, soft_wrap=True)
                return False
            row = rows[notebook.stem] = page.Row(notebook.stem, "ok", done.seconds)
            page.write_html(copy, row, target, notebook.parent, rows)
            progress.remove_task(bar)
            progress.console.print(f"{notebook.stem}: ok, {done.seconds:.1f} s")
            progress.advance(overall)
    return True


def _endpoint(target: str, console: Console):
    if target != "local":
        return contextlib.nullcontext()
    return local_server.up_for_now(lambda text: console.print(text, soft_wrap=True))


def _remove_earlier(notebooks: list[Path], out: Path) -> None:
    """A page of an earlier run must not look like one of this run."""
    for notebook in notebooks:
        for suffix in (".ipynb", ".html"):
            (out / notebook.name).with_suffix(suffix).unlink(missing_ok=True)
    (out / "index.html").unlink(missing_ok=True)


def _stop_jobs(target: str, parameters: dict, began: datetime.datetime, console) -> None:
    """Stop what this run's notebooks have started and left running."""
    from workshop.jobs.session import session  # boto3: not needed where nothing went wrong

    opened = session(target, parameters.get("seat", "me"))
    client = opened.client("sagemaker")
    pages = client.get_paginator("list_training_jobs").paginate(
        StatusEquals="InProgress", NameContains=opened.job_prefix, CreationTimeAfter=began
    )
    names = [one["TrainingJobName"] for found in pages for one in found["TrainingJobSummaries"]]
    for name in names:
        client.stop_training_job(TrainingJobName=name)
        console.print(f"Stopping {name}", soft_wrap=True)
    for name in names:
        while client.describe_training_job(TrainingJobName=name)["TrainingJobStatus"] in (
            "InProgress",
            "Stopping",
        ):
            time.sleep(0.5 if target == "local" else 5)


@contextlib.contextmanager
def _terminated_is_interrupted():
    """SIGTERM cleans up as Ctrl-C does."""

    def interrupt(*_) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
