"""The machine's clock is set while a job runs: its times never go back, and it is not cut short."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from emulator_harness import request

import local_sagemaker
from local_sagemaker import daemon
from local_sagemaker.pytest_plugin import BUCKET, Emulator
from local_sagemaker.training.job_record import JobRecord

PACKAGES = Path(local_sagemaker.__file__).parents[1]
HOUR = 3600.0
# Runs in every Python that the endpoint starts, before anything else.
ANOTHER_CLOCK = """
import os, time
real = time.time
def now():
    try:
        with open(os.environ["CLOCK_FILE"]) as stream:
            return real() + float(stream.read() or 0)
    except (OSError, KeyError, ValueError):
        return real()
time.time = now
"""


def record_of(tmp_path: Path) -> JobRecord:
    return JobRecord.create(tmp_path / "job", request("a-job"), "arn", "us-east-1")


def times(data: dict) -> list[float]:
    """Every time of a job, in the order in which they were written."""
    found = [data["created"]]
    for one in data["transitions"]:
        found += [one["StartTime"], one["EndTime"]]
    return [*found, data["ended"]]


@pytest.mark.parametrize("steps", [(-HOUR, 0), (HOUR, 0), (HOUR, -HOUR), (-HOUR, HOUR)], ids=str)
def test_a_records_times_never_go_back(tmp_path, monkeypatch, steps):
    real, shift = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    record = record_of(tmp_path)
    record.enter("Downloading")
    shift[0] += steps[0]
    record.enter("Training")
    shift[0] += steps[1]
    record.enter("Uploading")
    record.end("Completed")
    data = JobRecord.read(record.path).data
    assert times(data) == sorted(times(data))
    assert data["modified"] >= data["ended"]
    assert 0 <= data["seconds"] < 30, "measured, not computed from times"


def test_a_record_of_the_future_is_read_and_ended(tmp_path, monkeypatch):
    """The clock was ahead when the endpoint was killed, and is right when it comes up again."""
    real = time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: real() + HOUR)
        record = record_of(tmp_path)
        record.enter("Downloading")
    again = JobRecord.read(record.path)
    again.end("Failed", reason="it was killed")
    assert times(again.data) == sorted(times(again.data))


@pytest.fixture
def elsewhen(tmp_path, monkeypatch):
    """An endpoint whose clock, and whose jobs' supervisors', a file sets: seconds to add."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(ANOTHER_CLOCK)
    folders = os.pathsep.join([str(tmp_path / "site"), str(PACKAGES)])
    variables = {"PYTHONPATH": folders, "CLOCK_FILE": str(tmp_path / "clock")}
    monkeypatch.setattr(daemon, "_emulator_environment", lambda: os.environ | variables)
    one = Emulator(tmp_path / "state")
    one.clock = tmp_path / "clock"
    one.client("s3").create_bucket(Bucket=BUCKET)
    yield one
    one.down()


@pytest.mark.soak
@pytest.mark.namespaces
def test_a_job_whose_clock_is_set_forward_and_back(elsewhen):
    """It trains for six seconds, of at most half an hour."""
    body, api = request("clock"), elsewhen.client("sagemaker")
    body["StoppingCondition"]["MaxRuntimeInSeconds"] = 1800
    script = "import time; [(print('TICK', n, flush=True), time.sleep(0.5)) for n in range(12)]"
    command = {"ContainerEntrypoint": [sys.executable, "-c"], "ContainerArguments": [script]}
    body["AlgorithmSpecification"] |= command
    api.create_training_job(**body)
    while api.describe_training_job(TrainingJobName="clock")["SecondaryStatus"] != "Training":
        time.sleep(0.05)
    for step in (HOUR, -HOUR):
        elsewhen.clock.write_text(str(step))
        time.sleep(1.5)
    job = elsewhen.wait("clock")
    assert job.status == "Completed", job.description.get("FailureReason")
    told = job.description
    found = [told["CreationTime"], told["TrainingStartTime"]]
    for one in told["SecondaryStatusTransitions"][1:]:
        found += [one["StartTime"], one["EndTime"]]
    assert found == sorted(found), found
    assert told["LastModifiedTime"] >= told["TrainingEndTime"] >= told["TrainingStartTime"]
    assert 5 <= told["TrainingTimeInSeconds"] < 600
    assert sorted(job.lines("TICK"), key=int) == [str(number) for number in range(12)]
