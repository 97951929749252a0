"""Every way to fail ends in time, in AWS's status, with a reason, and leaves nothing behind."""

import pytest
from botocore.exceptions import ClientError
from emulator_harness import estimator, request, start, until_gone, until_log

LIMIT = 30  # seconds from the failure to the job's end


def run(emulator, sdk, mode: str, where: str = "", seconds: float = LIMIT, **options):
    hyperparameters = {"mode": mode} | ({"where": where} if where else {})
    name = start(estimator(sdk, "fail.py", hyperparameters=hyperparameters, **options))
    # How long that takes depends on what else this machine does.
    until_log(emulator, name, f"BEGUN {where or 'algo-1'}")
    job = emulator.wait(name, seconds)
    until_gone(name)
    return job


def test_a_script_that_raises_ends_the_other_host_and_what_it_started(emulator, sdk):
    job = run(emulator, sdk, "raise", where="algo-2")
    reason = job.description["FailureReason"]
    assert job.status == "Failed"
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage")
    assert "ValueError: the batch size must divide the data" in reason
    assert reason.endswith(", exit code: 1")
    assert len(reason) <= 1024
    assert "ModelArtifacts" not in job.description
    assert "algo-2" in job.lines("BEGUN")


def test_a_rank_killed_on_the_second_host(emulator, sdk):
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    job = run(emulator, sdk, "killed", where="algo-2", distribution=mpi)
    assert job.status == "Failed"
    assert "ExitCode 137" in job.description["FailureReason"]
    assert "signal 9" in job.description["FailureReason"]


def test_max_runtime(emulator, sdk):
    job = run(emulator, sdk, "stubborn", max_run=3)
    message = job.description
    assert (job.status, message["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    spent = (message["TrainingEndTime"] - message["TrainingStartTime"]).total_seconds()
    assert 3 <= spent < 3 + LIMIT


def test_a_source_that_does_not_exist_is_a_failed_job_and_a_name_is_taken_once(emulator, api):
    api.create_training_job(**request("no-source"))
    with pytest.raises(ClientError, match=r"\(ResourceInUse\).*already exists"):
        api.create_training_job(**request("no-source"))
    job = emulator.wait("no-source")
    assert job.status == "Failed"
    assert "404" in job.description["FailureReason"]
