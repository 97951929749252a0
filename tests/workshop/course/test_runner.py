"""`workshop run`: what it writes, and what it says and leaves when a notebook fails."""

import base64
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import nbformat
import pytest
from click.testing import CliRunner
from emulator_harness import until

from local_sagemaker import daemon
from workshop.cli.run import run
from workshop.course import run as course_run
from workshop.course.execute import NotebookFailed, execute
from workshop.lesson.results import read_results

COMMAND = [sys.executable, "-m", "workshop.cli", "run"]
SAVES = """import workshop, ipykernel.connect
kernel = ipykernel.connect.get_connection_info()
workshop.save_results(seen=[target, value], kernel=kernel)"""
PLOT = """from workshop import plots
with plots.canvas('Two ranks', 'step') as axes:
    axes.plot([1, 2])"""


@pytest.fixture
def endpoint_up(own_state):
    """The endpoint is up, so that a test need not start one of its own."""
    return daemon.running(own_state) or daemon.start(own_state, 0)


def start(*arguments):
    return CliRunner().invoke(run, [str(argument) for argument in arguments])


def test_a_run_writes_copies_pages_and_an_index(write_notebook, tmp_path, own_state):
    write_notebook("03_later", PLOT)
    first = write_notebook("01_first", SAVES)
    done = start("--notebooks", first.parent, "--out", tmp_path / "build", "-p", "value=7")
    assert done.exit_code == 0, done.output
    build = tmp_path / "build"
    results = read_results(build / "01_first.ipynb")
    assert results["seen"] == ["local", 7]
    # A kernel has sockets of its own, which go with it: no port that another may take first.
    kernel = json.loads(results["kernel"])
    assert kernel["transport"] == "ipc" and not Path(kernel["ip"]).parent.exists()
    index = (build / "index.html").read_text()
    assert index.index("01_first.html") < index.index("03_later.html")
    assert "sagemaker 2." in index and "<b>local</b>" in index
    for name in ("01_first", "03_later"):
        page = (build / f"{name}.html").read_text()
        seconds = re.search(rf"{name}: ok in (\d+\.\d) s", page)
        assert (
            f'{name}.html">{name}</a></td><td>ok</td><td class="number">{seconds[1]}</td>' in index
        )
    assert not list(build.glob(".partial*"))
    assert daemon.running(own_state) is None, "the endpoint that the run started is still up"
    # A plot is sharp, two pixels for one, and has the title for those who do not see it.
    (image,) = re.findall(r"<img[^>]*>", page)
    assert 'alt="Two ranks. Across: step."' in image
    data = base64.b64decode(re.search(r'base64,([^"]+)"', image)[1])
    pixels = int.from_bytes(data[16:20], "big")  # the width in a PNG's header
    assert pixels // 2 == int(re.search(r'width="(\d+)"', image)[1]) > 500


def test_a_failure_names_notebook_and_cell_and_stops_the_run(
    write_notebook, tmp_path, own_state, endpoint_up
):
    path = write_notebook("01_bad", "x = 1", "# a comment\ny = x / 0")
    write_notebook("02_never", "x = 1")
    build = tmp_path / "build"
    build.mkdir()
    for name in ("01_bad.html", "02_never.html"):
        (build / name).write_text("of an earlier run")
    done = start("--notebooks", path.parent, "--out", build)
    assert done.exit_code == 1
    assert "01_bad.ipynb, cell [4] failed: # a comment" in done.output
    assert "ZeroDivisionError: division by zero" in done.output
    page = (build / "01_bad.html").read_text()
    assert "ZeroDivisionError" in page and re.search(r"01_bad: failed in \d+\.\d s", page)
    assert not (build / "02_never.html").exists(), "it did not run: its old page must be gone"
    index = (build / "index.html").read_text()
    assert "failed" in index and "not run" in index
    assert daemon.running(own_state), "the endpoint that was up before is down"


def test_after_opening_a_session_errors_are_recorded(write_notebook, tmp_path, endpoint_up):
    opened = "import workshop; workshop.session(target).sagemaker_session"
    path = write_notebook("01_sdk", opened, "1 / 0")
    with pytest.raises(NotebookFailed, match="ZeroDivisionError: division by zero"):
        execute(path, tmp_path / "copy.ipynb", {})
    cells = nbformat.read(tmp_path / "copy.ipynb", as_version=4).cells
    kinds = [output.output_type for cell in cells for output in cell.get("outputs", [])]
    assert "error" in kinds


def test_a_cell_that_hangs_is_ended_and_named(write_notebook, tmp_path):
    path = write_notebook("01_slow", "import time", "time.sleep(600)")
    began = time.monotonic()
    with pytest.raises(NotebookFailed, match=r"cell \[4\] failed: time.sleep\(600\)\n.*2 s"):
        execute(path, tmp_path / "copy.ipynb", {"value": 2}, cell_seconds=2)
    assert time.monotonic() - began < 300


def test_a_kernel_that_dies_is_named(write_notebook, tmp_path):
    path = write_notebook("01_dies", "import os; os._exit(1)")
    with pytest.raises(NotebookFailed, match=r"cell \[2\] failed: import os"):
        execute(path, tmp_path / "copy.ipynb", {})


LONG_JOB = """
import workshop
from pathlib import Path
from sagemaker.tensorflow import TensorFlow
session = workshop.session(target)
settings = session.job_settings("long") | {"source_dir": str(Path("..").resolve())}
job = TensorFlow(entry_point="sleep.py", framework_version="2.12.0", py_version="py310",
                 instance_type="ml.c5.xlarge", instance_count=1, **settings)
job.fit(wait=False)
import os, time
Path("../kernel").write_text(str(os.getpid()))
time.sleep(600)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "was_up"),
    [
        pytest.param(signal.SIGINT, False, id="Ctrl-C, endpoint down"),
        pytest.param(signal.SIGTERM, True, id="SIGTERM, endpoint up", marks=pytest.mark.soak),
    ],
)
def test_an_interrupt_leaves_nothing(write_notebook, tmp_path, own_state, number, was_up):
    (tmp_path / "sleep.py").write_text("import time\ntime.sleep(600)\n")
    path, build = write_notebook("01_long", LONG_JOB), tmp_path / "build"
    daemon.stop(own_state)
    if was_up:
        daemon.start(own_state, 0)
    process = subprocess.Popen(
        [*COMMAND, "--notebooks", str(path.parent), "--out", str(build)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        until(lambda: (tmp_path / "kernel").exists() or process.poll() is not None, 120)
        assert process.poll() is None, process.communicate()[0]
        process.send_signal(number)
        output, _ = process.communicate(timeout=90)
    finally:
        process.kill()
    assert process.returncode == 130, output
    assert "Interrupted" in output
    assert re.search(r"workshop-me-long\S*: stopped", output)
    kernel = int((tmp_path / "kernel").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)
    assert (daemon.running(own_state) is not None) == was_up
    assert not list(build.glob(".partial*"))
    daemon.stop(own_state)


@pytest.mark.parametrize("error", [NotebookFailed("cell 30 failed"), KeyboardInterrupt()])
def test_what_a_failed_lesson_left_is_ended(tmp_path, monkeypatch, write_notebook, capsys, error):
    """After a failure or an interrupt in any cell. What exactly: test_cleanup.py."""
    opened, ended = object(), []
    monkeypatch.setattr(course_run, "session", lambda target, seat: opened)
    monkeypatch.setattr(course_run, "execute", mock.Mock(side_effect=error))
    cleanup = SimpleNamespace(
        end_what_runs=lambda session, since: ended.append((session, since)),
    )
    monkeypatch.setattr(course_run, "cleanup", cleanup)
    before = datetime.datetime.now(datetime.UTC)
    try:
        assert not course_run.run([write_notebook("01_x", "pass")], tmp_path / "out", "aws", {})
    except KeyboardInterrupt:
        assert isinstance(error, KeyboardInterrupt)
    ((session, since),) = ended
    assert session is opened and since >= before, "not what was there before"
    assert "workshop clean --dry-run --seat me --target aws" in capsys.readouterr().out
