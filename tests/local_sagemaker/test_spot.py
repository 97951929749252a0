"""Spot jobs: interrupted when asked for, started again with their checkpoints, ended in time."""

from __future__ import annotations

import io
import itertools
import tarfile
import time
import uuid

import pytest
from test_commands import workshop
from test_failures import until_log

from endpoint_harness import BUCKET, estimator, request, start, until_gone
from local_sagemaker.jobs import spot
from local_sagemaker.jobs.record import JobRecord
from local_sagemaker.protocol.errors import AwsError

SPOT = {"use_spot_instances": True, "max_run": 600, "max_wait": 900}


def counting(sdk, until: int, on_notice: str = "leave", **options):
    """An estimator of a job that counts; its checkpoints have a place of their own."""
    place = f"s3://{BUCKET}/spot-{uuid.uuid4().hex[:8]}"
    hyperparameters = {"until": until, "on-notice": on_notice}
    options = SPOT | {"checkpoint_s3_uri": place} | options
    return estimator(sdk, "counts.py", hyperparameters=hyperparameters, **options)


def statuses(description: dict) -> list[str]:
    return [one["Status"] for one in description["SecondaryStatusTransitions"]]


def numbers(job, start: str, host: str) -> list[int]:
    return [int(line.split()[1]) for line in job.lines(start) if line.split()[0] == host]


ONCE = ["Starting", "Downloading", "Training"]


def test_an_interrupted_job_resumes_from_its_checkpoint_on_every_instance(endpoint, sdk):
    name = start(counting(sdk, 60))
    for host in ("algo-1", "algo-2"):  # both have begun, however busy this machine is
        until_log(endpoint, name, f"COUNT {host} 3")
    spot.ask(endpoint.state, name)
    job = endpoint.wait(name, seconds=180)
    assert job.status == "Completed", job.description
    assert statuses(job.description) == [*ONCE, "Interrupted", *ONCE, "Uploading", "Completed"]
    assert set(job.lines("NOTICE")) == {"algo-1", "algo-2"}
    assert any("were interrupted" in line for line in job.lines("[local]"))
    first = numbers(job, "FROM", "algo-1")
    assert first[0] == 0 < first[1]
    assert numbers(job, "FROM", "algo-2") == first  # it has written none, and got algo-1's
    counted = numbers(job, "COUNT", "algo-1")
    assert sorted(set(counted)) == list(range(1, 61))  # nothing is left out,
    assert len(counted) - 60 <= 1  # and nothing but the last count is done again
    packed = endpoint.get(job.description["ModelArtifacts"]["S3ModelArtifacts"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        assert archive.extractfile("count.txt").read() == b"60"
    until_gone(name)
    check_times(job.description)


def check_times(description: dict) -> None:
    """Billed is the time with instances, without the time from an interruption to a new start."""
    told = description["SecondaryStatusTransitions"]
    held = [one for one in told if one["Status"] in ("Downloading", "Training", "Uploading")]
    seconds = sum((one["EndTime"] - one["StartTime"]).total_seconds() for one in held)
    assert description["BillableTimeInSeconds"] == pytest.approx(seconds, abs=1)
    assert description["TrainingTimeInSeconds"] == description["BillableTimeInSeconds"]
    assert description["TrainingStartTime"] == told[1]["StartTime"]
    for one, following in itertools.pairwise(told):
        assert one["EndTime"] == following["StartTime"]


def test_the_command_interrupts_and_a_stubborn_script_is_killed(endpoint, sdk):
    name = start(counting(sdk, 100_000, "stay", instance_count=1))
    until_log(endpoint, name, "COUNT algo-1 3")
    done = workshop(endpoint.state, "interrupt", name)
    assert (done.returncode, done.stdout) == (0, f"{name}: Interrupted; it starts again.\n")
    deadline = time.monotonic() + 90
    while len([one for one in endpoint.log(name)["algo-1"] if one.startswith("FROM")]) < 2:
        assert time.monotonic() < deadline, "it did not start again"
        time.sleep(0.1)
    stopped = workshop(endpoint.state, "stop", name)
    assert stopped.stdout == f"{name}: Stopped\n"
    job = endpoint.wait(name)
    assert numbers(job, "FROM", "algo-1")[1] >= 3
    assert statuses(job.description) == [*ONCE, "Interrupted", *ONCE, "Stopping", "Stopped"]
    done = workshop(endpoint.state, "interrupt", name)
    assert (done.returncode, "has ended already: Stopped" in done.stderr) == (2, True)


def test_a_job_that_is_not_spot_is_not_interrupted(endpoint, sdk):
    options = {"use_spot_instances": False, "max_wait": None, "instance_count": 1}
    name = start(counting(sdk, 100_000, **options))
    done = workshop(endpoint.state, "interrupt", name)
    assert (done.returncode, "has no spot instances" in done.stderr) == (2, True)
    endpoint.client("sagemaker").stop_training_job(TrainingJobName=name)
    job = endpoint.wait(name)
    assert "Interrupted" not in statuses(job.description)
    done = workshop(endpoint.state, "interrupt", "no-such-job-as-this")
    assert (done.returncode, "`workshop jobs` lists them" in done.stderr) == (1, True)


def test_max_wait(endpoint, sdk):
    """AWS's order: Stopping, then Stopped with MaxWaitTimeExceeded (see jobs/spot.py)."""
    name = start(counting(sdk, 100_000, instance_count=1, max_run=3, max_wait=3))
    job = endpoint.wait(name)
    assert (job.status, job.description["SecondaryStatus"]) == ("Stopped", "MaxWaitTimeExceeded")
    assert statuses(job.description)[-2:] == ["Stopping", "MaxWaitTimeExceeded"]


LIMITS = {
    "neither": (9, 19, None),
    "runs too long": (10, 10, "MaxRuntimeExceeded"),
    "waits too long": (9, 20, "MaxWaitTimeExceeded"),
    "runs too long, and by now waits too long": (15, 21, "MaxRuntimeExceeded"),
    "waits too long, and by now runs too long": (11, 25, "MaxWaitTimeExceeded"),
}


@pytest.mark.parametrize("name", LIMITS)
def test_which_limit_is_reached(name):
    running, waited, expected = LIMITS[name]
    limits = {"StoppingCondition": {"MaxRuntimeInSeconds": 10, "MaxWaitTimeInSeconds": 20}}
    assert spot.time_exceeded(limits, running, waited) == expected
    assert spot.time_exceeded({}, spot.DAY - 1, 1e9) is None
    assert spot.time_exceeded({}, spot.DAY, 1e9) == "MaxRuntimeExceeded"


def test_only_time_with_instances_is_counted(tmp_path, monkeypatch):
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr("local_sagemaker.jobs.record.time.monotonic", lambda: next(clock))
    record = JobRecord.create(tmp_path, request("spot-times"), "arn", "us-east-1")
    assert record.seconds() == 0
    for status in ("Downloading", "Training", "Interrupted", "Starting"):
        record.enter(status)  # the clock is read at the first and the third: ten seconds
    assert record.seconds() == 10
    record.enter("Downloading")
    record.end("Completed")
    assert record.data["seconds"] == 20


@pytest.mark.parametrize("words", ["after 20", "20s", "after -1s", "after 1e9s", "now", "", "on"])
def test_other_words_are_refused(words):
    body = request("spot-words", Environment={spot.VARIABLE: words}, EnableManagedSpotTraining=True)
    with pytest.raises(AwsError, match="expected: after 20s"):
        spot.check(body)


def test_an_interruption_is_asked_for_by_spot_jobs_only():
    body = request("spot-none", Environment={spot.VARIABLE: "after 1s"})
    with pytest.raises(AwsError, match="set EnableManagedSpotTraining"):
        spot.check(body)
    limits = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}
    spot.check(body | {"EnableManagedSpotTraining": True, "StoppingCondition": limits})
    spot.check(request("spot-other"))


def test_an_interruption_comes_once(tmp_path):
    job = tmp_path / "jobs" / "spot-once"
    job.mkdir(parents=True)
    body = request("spot-once", Environment={spot.VARIABLE: "after 0.5s"})
    due = spot.Interruptions(body, job).due
    assert [due(0.4), due(0.5), due(9)] == [False, True, False]
    spot.ask(tmp_path, "spot-once")
    assert [due(9), due(9)] == [True, False]
