"""kill -9 of the emulator: nothing is lost, nothing lives on, and the job says why."""

from __future__ import annotations

import os
import signal
import time

import pytest
from emulator_harness import estimator, processes_with, start, until_gone, until_log

from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session


@pytest.fixture
def mortal(tmp_path, monkeypatch, request):
    """An emulator of this test's own, and a session for it."""
    emulator = Emulator(tmp_path / "state")
    request.addfinalizer(emulator.down)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    emulator.put("data/part-0.txt", "shard")
    emulator.session = sdk_session(emulator, monkeypatch)
    return emulator


def die(emulator: Emulator) -> None:
    os.kill(emulator.running.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while emulator.running.pid in _pids():
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
    job = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "the emulator ended while this job was running" in job["FailureReason"]
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
    job = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert job["TrainingJobStatus"] in ("Failed", "Stopped")
