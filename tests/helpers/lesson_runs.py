"""Execute the lessons for the tests: each once, with small numbers, for all who read it."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from filelock import FileLock

from local_sagemaker.pytest_plugin import Emulator, emulator
from workshop.course.execute import NotebookFailed, execute
from workshop.course.lessons import chosen
from workshop.lesson.results import read_results

SEAT = "tests"
# Fewer of everything: the lesson's own numbers are for `make run`.
SMALL: dict[str, dict] = {
    "00": {"epochs": 5, "expected_accuracy": 0.85},
    "01": {"rounds": 5, "steps": 2, "seeds": 2, "large_batch": 256},
    "02": {
        "tensor_bytes": [2_000_000, 400_000, 4_000],
        "message_bytes": [2_000, 60_000, 600_000],
        "rounds": 3,
    },
    # A slow worker that is slower than what else a busy machine does to the others.
    "03": {
        "steps": 110,
        "slow_ms": 100,
        "seeds": 2,
        "rounds": 2,
        "epochs": 6,
        "expected_accuracy": 0.85,
    },
    "04": {"max_steps": 6, "steps": 2, "rounds": 3},
    "05": {"measured_batch": 256, "steps": 2, "rounds": 3, "short_batches": [16, 64]},
    "06": {
        "links": ["wide", "25mbit"],
        "jobs_each": 1,
        "rounds": 2,
        "layout_instances": [1, 2],
        "layout_megabytes": 4,
    },
    "07": {
        "ranks_each": 2,
        "megabytes": 4,
        "blocks": 3,
        "training_between": "50mbit",
    },
    "08": {"epochs": 8, "requests": 40, "rounds": 3},
    "09": {"epochs": 1, "rounds": 3},
    "10": {
        "epochs": 80,
        "checkpoint_every": 250,
        "interrupt_at": 300,
        "elastic_ranks": [2, 1],
        "elastic_steps": 10,
        "schedules": 6,
    },
    "11": {"width": 64, "rounds": 2},
    "12": {"steps": 128, "seeds": [0], "rounds": 2, "links": ["wide", "20mbit"]},
    "99": {},
}
AS_A_LEARNER: list[str] = []  # the emulator's own options
CELL_SECONDS = 600  # of a machine that is shared
RECORDING = Path(__file__).parents[1] / "cloudformation" / "recording"
OWN_BUCKET = f"workshop-{SEAT}-own"


@dataclass(frozen=True)
class LessonRun:
    """An executed lesson. results: what it recorded. state: its emulator's state directory.

    calls: a file with the calls that it made of AWS (see tests/cloudformation/recording).
    """

    results: dict
    notebook: nbformat.NotebookNode
    path: Path
    state: Path

    @property
    def calls(self) -> Path:
        return self.path.with_suffix(".calls")

    @property
    def printed(self) -> str:
        """All text that the cells printed."""
        return "".join(output.get("text", "") for output in self._outputs())

    @property
    def shown(self) -> str:
        """What the cells show, in words: tables, and pictures' alternative texts."""
        data = (output.get("data", {}) for output in self._outputs())
        return "\n".join(bundle.get("text/plain", "") for bundle in data)

    @property
    def complaints(self) -> list[str]:
        """What the cells wrote to stderr, and their errors."""
        return [
            output.get("text", output.get("evalue", ""))
            for output in self._outputs()
            if output.get("name") == "stderr" or output.output_type == "error"
        ]

    def _outputs(self) -> Iterator[nbformat.NotebookNode]:
        for cell in self.notebook.cells:
            yield from cell.get("outputs", [])


@pytest.fixture(scope="session")
def lesson_run(common_folder):
    """A function: number (or "reference") -> its run, executed once for all tests and workers."""
    return lambda number: run_once(number, common_folder / "lessons")


def run_once(number: str, shared: Path) -> LessonRun:
    """A lesson's run with its small numbers; executed by whoever asks first.

    shared: a folder of all processes that test. Raises NotebookFailed, again for each who asks.
    """
    shared.mkdir(parents=True, exist_ok=True)
    (lesson,) = chosen((number,))
    state, failure = shared / f"state-{number}", shared / f"{number}.failed"
    with FileLock(shared / f"{number}.lock"):
        if failure.exists():
            raise NotebookFailed(failure.read_text())
        if not (shared / lesson.name).exists():
            with emulator(state, AS_A_LEARNER) as running:
                if number == "99":
                    make_own_bucket(running)
                try:
                    with recorded((shared / lesson.name).with_suffix(".calls")):
                        run(lesson, shared / lesson.name, **SMALL.get(number, {}))
                except NotebookFailed as error:
                    failure.write_text(str(error))
                    raise
    return read(shared / lesson.name, state)


@contextlib.contextmanager
def recorded(calls: Path) -> Iterator[None]:
    """The processes that are started meanwhile note their calls of AWS in a file."""
    calls.touch()  # some lessons make none
    with pytest.MonkeyPatch.context() as patch:
        path = [str(RECORDING), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(path))
        patch.setenv("RECORD_AWS_CALLS", str(calls))
        yield


def run(lesson: Path, copy: Path, **parameters) -> None:
    """Execute a lesson with the emulator of LOCAL_SAGEMAKER_STATE_DIR. Raises NotebookFailed."""
    parameters = {"target": "local", "seat": SEAT} | parameters
    execute(lesson, copy, parameters, cell_seconds=CELL_SECONDS)


def read(path: Path, state: Path) -> LessonRun:
    return LessonRun(read_results(path), nbformat.read(path, as_version=4), path, state)


def make_own_bucket(emulator: Emulator) -> None:
    """A bucket of the learner's seat, with something in it: lesson 99 must leave it alone."""
    s3 = emulator.client("s3")
    tags = [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": SEAT}]
    s3.create_bucket(Bucket=OWN_BUCKET)
    s3.put_bucket_tagging(Bucket=OWN_BUCKET, Tagging={"TagSet": tags})
    s3.put_object(Bucket=OWN_BUCKET, Key="results.csv", Body=b"a week's work")
