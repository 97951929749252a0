"""kill -9 of the emulator: nothing is lost, nothing lives on, and the job says why."""

import psutil
from emulator_harness import estimator, processes_with, start, until_gone, until_log

from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session


def die(emulator: Emulator) -> None:
    process = psutil.Process(emulator.running.pid)
    process.kill()
    process.wait(60)


def test_kill_9_in_the_middle_of_a_job_and_then_down(mortal, monkeypatch):
    mortal.put("data/part-0.txt", "shard")
    session = sdk_session(mortal, monkeypatch)
    earlier = mortal.wait(start(estimator(session, "show.py", instance_count=1)))
    model = mortal.get(earlier.description["ModelArtifacts"]["S3ModelArtifacts"])
    mortal.client("iam").create_role(RoleName="kept", AssumeRolePolicyDocument="{}")
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    stubborn = {"hyperparameters": {"mode": "stubborn"}}
    name = start(estimator(session, "fail.py", distribution=mpi, **stubborn))
    until_log(mortal, name, "BEGUN")
    assert processes_with(name) != []
    die(mortal)
    until_gone(name)

    mortal.up(mortal.running.port)
    job = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert job["TrainingJobStatus"] == "Failed"
    assert "the emulator ended while this job was running" in job["FailureReason"]
    again = mortal.wait(earlier.name)
    for name in ("FinalMetricDataList", "SecondaryStatusTransitions"):
        assert again.description[name] == earlier.description[name]
    assert mortal.get(again.description["ModelArtifacts"]["S3ModelArtifacts"]) == model
    assert mortal.get(f"s3://{BUCKET}/data/part-0.txt") == b"shard"
    assert mortal.client("iam").get_role(RoleName="kept")["Role"]["RoleName"] == "kept"
    assert earlier.log == again.log
    assert not list((mortal.state / "jobs" / name).glob("algo-*"))

    # Jobs start as before; and `down` ends them.
    name = start(estimator(session, "fail.py", **stubborn))
    until_log(mortal, name, "BEGUN")
    mortal.down()
    until_gone(name)
    mortal.up(mortal.running.port)
    job = mortal.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert job["TrainingJobStatus"] in ("Failed", "Stopped")
