"""The list of the lessons' jobs (workshop/jobs/lesson_jobs.py) is what executed lessons send."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from course_text import cells, lessons, read
from lesson_runs import SEAT, SMALL
from sagemaker.estimator import EstimatorBase

import workshop
from workshop.jobs.job_preview import preview, preview_session
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs, lesson_parameters
from workshop.launch.recording import RECORDER

# Differs from run to run: the time in a job's name, the letters of its checkpoints' place, the
# account, the role's name, the network.
OF_ONE_RUN = re.compile(
    r"\d{4}(-\d\d){5}-([0-9a-f]{8}|\d{3})|\b\d{12}\b|(?<=:role/)[^\"]+|"
    r"(?<=subnet-)[0-9a-f]+|(?<=sg-)[0-9a-f]+"
)
LESSONS = lessons()
HOROVOD = {"05", "06", "09"}  # without Horovod these lessons run another script here
ADDED = ("LOCAL_SAGEMAKER_FOLDER", "WORKSHOP_RECORD", "TORCH_FR_BUFFER_SIZE")
pytestmark = [pytest.mark.reads_lessons, pytest.mark.timeout(1500)]


def not_recorded(request: dict) -> dict:
    """The request as it was written: without what lets `workshop why` ask its ranks."""
    environment = {k: v for k, v in request["Environment"].items() if k not in ADDED}
    path = environment.pop("PYTHONPATH").removeprefix(str(RECORDER)).removeprefix(":")
    environment |= {"PYTHONPATH": path} if path else {}
    others = {name: value for name, value in request.items() if name != "Environment"}
    return others | ({"Environment": environment} if environment else {})


def sent(state: Path) -> list[dict]:
    """The CreateTrainingJob requests that the endpoint of a lesson got, in their order."""
    records = [json.loads(path.read_text()) for path in state.rglob("jobs/*/record.json")]
    records.sort(key=lambda record: record["created"])
    return [not_recorded(record["request"]) for record in records]


def only_here(request: dict) -> bool:
    """Whether a lesson starts this job on the emulator alone: it says so where it does."""
    settings, name = request["HyperParameters"], request["TrainingJobName"]
    link = request.get("Environment", {}).get("LOCAL_SAGEMAKER_BANDWIDTH", "wide")
    lesson_06, lesson_12 = "-links-" in name, "-less-often-" in name
    return (
        (lesson_06 and link != "wide" and "algorithms" not in settings)
        or (lesson_06 and link.startswith("1gbit"))  # one zone or two
        or link.endswith("ms")  # lesson 02, where netem works
        or (lesson_12 and link != "wide")
        or link == "by-type"
        or "sagemaker_distributed_dataparallel_enabled" in settings
    )


def comparable(request: dict) -> dict:
    return json.loads(OF_ONE_RUN.sub("*", json.dumps(request)))


@pytest.mark.parametrize("number", sorted({*JOBS, "02"} - {"99"}))
def test_the_list_is_what_the_lesson_sends(number, lesson_run):
    if number in HOROVOD and not importlib.util.find_spec("horovod"):
        pytest.skip("Horovod is missing here: the lesson's jobs run another script")
    run = lesson_run(number)
    if run.results.get("recorded"):
        pytest.skip("links cannot be shaped here: the lesson starts fewer jobs")
    listed = preview(lesson_jobs(number, SMALL[number]), preview_session("local", SEAT))
    requests = [request for request in sent(run.state) if not only_here(request)]
    sent_ones = list(map(comparable, requests))
    listed_ones = [comparable(job.request) for job in listed]
    if number == "05":  # its first five measure, in random order
        sent_ones[:5], listed_ones[:5] = (
            sorted(some[:5], key=json.dumps) for some in (sent_ones, listed_ones)
        )
    assert sent_ones == listed_ones


def test_the_list_is_what_lesson_99_sends(monkeypatch):
    """That lesson deletes its job's record; so its cell is run here, and sends nothing."""
    (cell,) = [cell for cell in cells(read(LESSONS["99"])) if ".fit(" in cell.text]
    session = preview_session("local", SEAT)
    monkeypatch.setattr(EstimatorBase, "fit", EstimatorBase.fit.__wrapped__)  # no telemetry
    monkeypatch.setattr("workshop.follow", lambda estimator: None, raising=False)
    names = lesson_parameters("99") | {"session": session, "workshop": workshop}
    exec(cell.text, names | {"data": f"s3://{session.bucket}/data/digits"})
    (listed,) = preview(lesson_jobs("99"), preview_session("local", SEAT))
    assert [comparable(request) for request in session.requests] == [comparable(listed.request)]
