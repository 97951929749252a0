"""kill -9 of the endpoint: nothing is lost, nothing lives on, and the job says why."""

from __future__ import annotations

import os
import signal
import time

import pytest
from emulator_harness import estimator, start

from local_sagemaker.pytest_plugin import (
    BUCKET,
    Emulator,
    processes_with,
    sdk_session,
    until_gone,
    until_log,
)


@pytest.fixture
def mortal(tmp_path, monkeypatch, request):
    """An endpoint of this test's own, and a session for it."""
    one = Emulator(tmp_path / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("data/part-0.txt", "shard")
    one.session = sdk_session(one, monkeypatch)
    return one


def die(one: Emulator) -> None:
    os.kill(one.running.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while one.running.pid in _pids():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _pids() -> set[int]:
    import psutil

    alive = (p for p in psutil.process_iter(["status"]) if p.info["status"] != "zombie")
    return {process.pid for process in alive}


def test_kill_9_in_the_middle_of_a_job_and_then_down(mortal):
    earlier = mortal.wait(start(estimator(mortal.session, "show.py", instance_count=1)))
    model = mortal.get(earlier.description["ModelArtifacts"]["S3ModelArtifacts"])
    mortal.client("iam").create_role(RoleName="kept", AssumeRolePolicyDocument="{}")
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    name = start(
        estimator(mortal.session, "fail.py", distribution=mpi, hyperparameters={"mode": "stubborn"})
    )
    until_log(mortal, name, "BEGUN")
    assert processes_with(name) != []
    die(mortal)
    until_gone(name)

    mortal.up(mortal.running.port)
    told = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert told["TrainingJobStatus"] == "Failed"
    assert "the emulator ended while this job was running" in told["FailureReason"]
    again = mortal.wait(earlier.name)
    assert again.description["FinalMetricDataList"] == earlier.description["FinalMetricDataList"]
    assert (
        again.description["SecondaryStatusTransitions"]
        == (earlier.description["SecondaryStatusTransitions"])
    )
    assert mortal.get(again.description["ModelArtifacts"]["S3ModelArtifacts"]) == model
    assert mortal.get(f"s3://{BUCKET}/data/part-0.txt") == b"shard"
    assert mortal.client("iam").get_role(RoleName="kept")["Role"]["RoleName"] == "kept"
    assert earlier.log == again.log
    assert not list((mortal.state / "jobs" / name).glob("algo-*"))

    # Jobs start as before; and `down` ends them.
    name = start(estimator(mortal.session, "fail.py", hyperparameters={"mode": "stubborn"}))
    until_log(mortal, name, "BEGUN")
    mortal.down()
    until_gone(name)
    mortal.up(mortal.running.port)
    told = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert told["TrainingJobStatus"] in ("Failed", "Stopped")
