"""Every way to fail ends in time, in AWS's status, with a reason, and leaves nothing behind."""

from __future__ import annotations

import time

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, ROLE, estimator, request, start, until_gone

LIMIT = 30  # seconds from the failure to the job's end


def run(endpoint, sdk, mode: str, where: str = "", seconds: float = LIMIT, **options):
    hyperparameters = {"mode": mode} | ({"where": where} if where else {})
    name = start(estimator(sdk, "fail.py", hyperparameters=hyperparameters, **options))
    job = endpoint.wait(name, seconds)
    until_gone(name)
    return job


def test_a_script_that_raises(endpoint, sdk):
    job = run(endpoint, sdk, "raise", instance_count=1)
    reason = job.description["FailureReason"]
    assert job.status == "Failed"
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage")
    assert "ValueError: the batch size must divide the data" in reason
    assert reason.endswith(", exit code: 1")
    assert len(reason) <= 1024
    assert "ModelArtifacts" not in job.description


def test_a_script_that_exits_3(endpoint, sdk):
    job = run(endpoint, sdk, "exit", instance_count=1)
    assert job.status == "Failed"
    assert "ExitCode 3" in job.description["FailureReason"]


def test_one_host_fails_and_the_other_does_not_hang(endpoint, sdk):
    job = run(endpoint, sdk, "raise", where="algo-2")
    assert job.status == "Failed"
    assert "ValueError" in job.description["FailureReason"]
    assert job.lines("BEGUN") == ["algo-1", "algo-2"]


def test_killed_on_the_second_host(endpoint, sdk):
    job = run(endpoint, sdk, "killed", where="algo-2")
    assert job.status == "Failed"
    assert "ExitCode -9" in job.description["FailureReason"]


def test_a_rank_killed_on_the_second_host(endpoint, sdk):
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    job = run(endpoint, sdk, "killed", where="algo-2", distribution=mpi)
    assert job.status == "Failed"
    assert "ExitCode 137" in job.description["FailureReason"]
    assert "signal 9" in job.description["FailureReason"]


def test_a_missing_channel(endpoint, sdk):
    job = run(endpoint, sdk, "channel", instance_count=1)
    assert job.status == "Failed"
    assert "KeyError: 'SM_CHANNEL_VALIDATION'" in job.description["FailureReason"]


def test_what_a_script_started_ends_with_it(endpoint, sdk):
    job = run(endpoint, sdk, "child", instance_count=1)
    assert "my child lives on" in job.description["FailureReason"]


def test_max_runtime(endpoint, sdk):
    job = run(endpoint, sdk, "stubborn", max_run=5)
    told = job.description
    assert (job.status, told["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    spent = (told["TrainingEndTime"] - told["TrainingStartTime"]).total_seconds()
    assert 5 <= spent < 5 + LIMIT


def test_stop_gives_a_script_time_to_save(endpoint, sdk):
    name = start(estimator(sdk, "fail.py", hyperparameters={"mode": "saves"}, instance_count=1))
    api = endpoint.client("sagemaker")
    until_log(endpoint, name, "BEGUN")
    time.sleep(0.3)  # the handler is set just after that line
    api.stop_training_job(TrainingJobName=name)
    job = endpoint.wait(name, LIMIT)
    assert job.status == "Stopped"
    assert job.description["ModelArtifacts"]["S3ModelArtifacts"].endswith("model.tar.gz")
    with pytest.raises(ClientError, match="is in status Stopped"):
        api.stop_training_job(TrainingJobName=name)


def until_log(endpoint, name: str, text: str) -> None:
    deadline = time.monotonic() + 60
    while not any(text in line for lines in endpoint.log(name).values() for line in lines):
        assert time.monotonic() < deadline, "the script never began"
        time.sleep(0.1)


def test_an_unknown_launcher_is_ignored_as_on_aws_and_said(endpoint, sdk):
    options = {"distribution": {"horovod": {"enabled": True}}}
    job = endpoint.wait(start(estimator(sdk, "show.py", **options)))
    assert job.status == "Completed"
    assert any("no launcher that SageMaker knows" in line for line in job.lines("[local]"))


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("s3://no-such-bucket-here/data", "No S3 objects found under S3 URL"),
        (f"s3://{BUCKET}/no/such/prefix", "No S3 objects found under S3 URL"),
    ],
)
def test_an_s3_uri_that_does_not_exist(endpoint, sdk, uri, reason):
    with pytest.raises(ClientError, match=reason) as caught:
        start(estimator(sdk, "show.py"), {"training": uri})
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_a_role_that_is_no_arn(endpoint):
    api = endpoint.client("sagemaker")
    with pytest.raises(ClientError, match="at 'roleArn' failed to satisfy constraint") as caught:
        api.create_training_job(**request("bad-role", RoleArn="just-a-very-long-role-name"))
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    with pytest.raises(ClientError, match="Requested resource not found"):
        api.describe_training_job(TrainingJobName="bad-role")


def test_a_source_that_does_not_exist_is_a_failed_job(endpoint):
    api = endpoint.client("sagemaker")
    api.create_training_job(**request("no-source"))
    job = endpoint.wait("no-source", LIMIT)
    assert job.status == "Failed"
    assert "404" in job.description["FailureReason"]


def test_an_output_bucket_that_does_not_exist(endpoint, sdk):
    one = estimator(sdk, "show.py", instance_count=1, output_path="s3://no-such-bucket-here/x")
    one.code_location = f"s3://{BUCKET}/code"
    job = endpoint.wait(start(one), LIMIT)
    assert job.status == "Failed"
    assert "Artifact upload failed" in job.description["FailureReason"]


def test_a_name_is_taken_once(endpoint):
    api = endpoint.client("sagemaker")
    body = request("twice", RoleArn=ROLE)
    api.create_training_job(**body)
    with pytest.raises(ClientError, match="already exists") as caught:
        api.create_training_job(**body)
    assert caught.value.response["Error"]["Code"] == "ResourceInUse"
    endpoint.wait("twice", LIMIT)
