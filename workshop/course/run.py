"""Run lessons one after the other and write their pages. Leaves nothing running."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import time
from pathlib import Path

from workshop.account import cleanup
from workshop.course import pages
from workshop.course.execute import NotebookFailed, execute
from workshop.jobs import local_server
from workshop.jobs.lesson_jobs import check_parameters, parameters_of
from workshop.jobs.session import check_names, session
from workshop.lesson.show import versions
from workshop.paths import ROOT

CELL_SECONDS = {"local": 15 * 60, "aws": 60 * 60}


def run(notebooks: list[Path], out: Path, target: str, parameters: dict) -> bool:
    """Execute notebooks in order; stop at the first that fails.

    Writes out/NN_name.ipynb, out/NN_name.html, out/index.html and out/run.json, which says when
    and on what machine they ran; the site shows it. parameters: for each of the
    notebooks, besides `target`. Returns whether all ran to their end. Raises WrongParameter
    and SessionError (a seat's name) before anything runs. An interrupt or a failure ends the
    kernel, and the jobs and endpoints that were started.
    """
    parameters = {"target": target} | parameters
    for notebook in notebooks:
        check_parameters(notebook.name, parameters, parameters_of(notebook))
    if "seat" in parameters:
        check_names(target, parameters["seat"])
    out.mkdir(parents=True, exist_ok=True)
    _remove_earlier(notebooks, out)
    rows = {path.stem: pages.Row(path.stem, "not run") for path in notebooks}
    up = local_server.up_for_now() if target == "local" else contextlib.nullcontext()
    with _terminated_is_interrupted(), up:
        began = datetime.datetime.now(datetime.UTC)
        try:
            good = _run_all(notebooks, out, target, parameters, rows)
        except KeyboardInterrupt:
            _end_what_costs(target, parameters, began)
            raise
        finally:
            index = pages.write_index(out, list(rows.values()), target)
            (out / "run.json").write_text(json.dumps(_about(target, began, rows), indent=1))
        if not good:
            _end_what_costs(target, parameters, began)
    print(f"Pages: {index}")
    return good


def _run_all(
    notebooks: list[Path], out: Path, target: str, parameters: dict, rows: dict[str, pages.Row]
) -> bool:
    for notebook in notebooks:
        copy, failure, began = out / notebook.name, None, time.monotonic()
        try:
            execute(notebook, copy, parameters, CELL_SECONDS[target], progress=True)
        except NotebookFailed as error:
            failure = error
        seconds = time.monotonic() - began
        row = pages.Row(notebook.stem, "failed" if failure else "ok", seconds)
        rows[notebook.stem] = row
        if copy.exists():
            pages.write_html(copy, row, target, notebook.parent, rows)
        if failure:
            print(f"FAILED after {seconds:.1f} s: {failure}", flush=True)
            return False
        print(f"{notebook.stem}: ok, {seconds:.1f} s", flush=True)
    return True


def _about(target: str, began: datetime.datetime, rows: dict[str, pages.Row]) -> dict:
    """What a reader of a number has to know of the run: date, commit, machine, versions."""
    return {
        "date": began.strftime("%Y-%m-%d"),
        "commit": _commit(),
        "machine": _machine(),
        "target": target,
        "versions": versions(),
        "lessons": [{"name": row.name, "seconds": row.seconds or 0} for row in rows.values()],
    }


def _commit() -> str:
    """The commit of the kit, "changed" if files differ from it; "unknown" without git."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty=, changed"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _machine() -> str:
    """Processor, cores and memory of this machine, in one line."""
    cpu = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        models = re.findall(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
        cpu = models[0] if models else cpu
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB of memory, {platform.system()}"


def _remove_earlier(notebooks: list[Path], out: Path) -> None:
    """A page of an earlier run must not look like one of this run."""
    for notebook in notebooks:
        for suffix in (".ipynb", ".html"):
            (out / notebook.name).with_suffix(suffix).unlink(missing_ok=True)
    for name in ("index.html", "run.json"):
        (out / name).unlink(missing_ok=True)


def _end_what_costs(target: str, parameters: dict, began: datetime.datetime) -> None:
    """End what this run's notebooks have started and left; say where the rest is shown."""
    seat = parameters.get("seat", "me")
    cleanup.end_what_runs(session(target, seat), began)
    where = f"--seat {seat} --target {target}"
    print(f"What is left, and what it costs: workshop clean --dry-run {where}", flush=True)


@contextlib.contextmanager
def _terminated_is_interrupted():
    """SIGTERM cleans up as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
