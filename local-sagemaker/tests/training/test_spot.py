"""Spot jobs: interrupted when asked for, started again with their checkpoints, ended in time."""

import itertools
import uuid

import pytest
from command_harness import run
from emulator_harness import (
    command_request,
    completed,
    ended,
    estimator,
    request,
    start,
    unpacked,
    until,
    until_gone,
    until_log,
)

from local_sagemaker.cli import main
from local_sagemaker.pytest_plugin import BUCKET
from local_sagemaker.training import spot

UNTIL = 40
SPOT = {"use_spot_instances": True, "max_run": 600, "max_wait": 900}


def counting(sdk, until: int, on_notice: str = "leave", **options):
    """An estimator of a job that counts; its checkpoints have a place of their own."""
    place = f"s3://{BUCKET}/spot-{uuid.uuid4().hex[:8]}"
    hyperparameters = {"until": until, "on-notice": on_notice}
    options = SPOT | {"checkpoint_s3_uri": place} | options
    return estimator(sdk, "counts.py", hyperparameters=hyperparameters, **options)


def statuses(description: dict) -> list[str]:
    return [transition["Status"] for transition in description["SecondaryStatusTransitions"]]


def numbers(job, start: str, host: str) -> list[int]:
    return [int(line.split()[1]) for line in job.lines(start) if line.split()[0] == host]


ONCE = ["Starting", "Downloading", "Training"]


def test_an_interrupted_job_resumes_from_its_checkpoint_on_every_instance(emulator, sdk):
    name = start(counting(sdk, UNTIL))
    for host in ("algo-1", "algo-2"):  # both have begun, however busy this machine is
        until_log(emulator, name, f"COUNT {host} 3")
    spot.ask(emulator.state, name)
    job = completed(emulator.wait(name, seconds=180))
    assert statuses(job.description) == [*ONCE, "Interrupted", *ONCE, "Uploading", "Completed"]
    assert set(job.lines("NOTICE")) == {"algo-1", "algo-2"}
    assert any("were interrupted" in line for line in job.lines("[local]"))
    first = numbers(job, "FROM", "algo-1")
    assert first[0] == 0 < first[1]
    assert numbers(job, "FROM", "algo-2") == first  # it has written none, and got algo-1's
    counted = numbers(job, "COUNT", "algo-1")
    assert sorted(set(counted)) == list(range(1, UNTIL + 1))  # nothing is left out,
    assert len(counted) - UNTIL <= 1  # and nothing but the last count is done again
    model = unpacked(emulator, job.description["ModelArtifacts"]["S3ModelArtifacts"])
    assert model["count.txt"] == b"%d" % UNTIL
    until_gone(name)
    check_times(job.description)


def check_times(description: dict) -> None:
    """Billed is the time with instances, without the time from an interruption to a new start."""
    message = description["SecondaryStatusTransitions"]
    spans = [item for item in message if item["Status"] in ("Downloading", "Training", "Uploading")]
    seconds = sum((item["EndTime"] - item["StartTime"]).total_seconds() for item in spans)
    assert description["BillableTimeInSeconds"] == pytest.approx(seconds, abs=1)
    assert description["TrainingTimeInSeconds"] == description["BillableTimeInSeconds"]
    assert description["TrainingStartTime"] == message[1]["StartTime"]
    for item, following in itertools.pairwise(message):
        assert item["EndTime"] == following["StartTime"]


def interrupted(emulator, name: str) -> tuple[int, str]:
    """What `local-sagemaker interrupt` answers."""
    done = run(main, emulator.state, "interrupt", name)
    return done.exit_code, done.output


def test_the_command_interrupts_and_a_stubborn_script_is_killed(emulator, sdk):
    name = start(counting(sdk, 100_000, "stay", instance_count=1))
    until_log(emulator, name, "COUNT algo-1 3")
    message = interrupted(emulator, name)
    assert message == (0, f"{name}: its instances are taken away; it starts again on others.\n")
    until(
        lambda: str(emulator.log(name)["algo-1"]).count("FROM") == 2, 90, "it did not start again"
    )
    emulator.client("sagemaker").stop_training_job(TrainingJobName=name)
    job = emulator.wait(name)
    assert numbers(job, "FROM", "algo-1")[1] >= 3
    assert statuses(job.description) == [*ONCE, "Interrupted", *ONCE, "Stopping", "Stopped"]
    code, message = interrupted(emulator, name)
    assert (code, "has ended already: Stopped" in message) == (2, True)


@pytest.mark.namespaces
def test_a_job_that_is_not_spot_is_not_interrupted(emulator, api):
    name = "not-spot"
    api.create_training_job(**command_request(name, ["sleep", "600"]))
    code, message = interrupted(emulator, name)
    assert (code, "has no spot instances" in message) == (2, True)
    api.stop_training_job(TrainingJobName=name)
    assert "Interrupted" not in statuses(emulator.wait(name).description)
    code, message = interrupted(emulator, "no-such-job-as-this")
    assert (code, "`local-sagemaker jobs` lists them" in message) == (1, True)


@pytest.mark.namespaces
def test_max_wait(emulator):
    """AWS's order: Stopping, then Stopped with MaxWaitTimeExceeded (see training/spot.py)."""
    limits = {"MaxRuntimeInSeconds": 3, "MaxWaitTimeInSeconds": 3}
    spot_job = {"EnableManagedSpotTraining": True, "StoppingCondition": limits}
    body = command_request("waits-too-long", ["sleep", "600"], **spot_job)
    job = ended(emulator, body)
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


def test_an_interruption_comes_once(tmp_path):
    job = tmp_path / "jobs" / "spot-once"
    job.mkdir(parents=True)
    assert not spot.taken_away(job)
    spot.ask(tmp_path, "spot-once")
    assert [spot.taken_away(job), spot.taken_away(job)] == [True, False]


def test_a_warm_pool_is_no_spot_job():
    """What contradicts itself is refused: test_validation.py."""
    resources = request("a-job")["ResourceConfig"] | {"KeepAlivePeriodInSeconds": 60}
    spot.check(request("a-job", ResourceConfig=resources))
