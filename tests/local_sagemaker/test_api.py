"""DescribeTrainingJob, ListTrainingJobs, StopTrainingJob and tags, as clients see them."""

from __future__ import annotations

import base64
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, estimator, request, start


@pytest.fixture(scope="module")
def listed(endpoint):
    """The names of three jobs that have ended, the oldest first."""
    api, names = endpoint.client("sagemaker"), ["listed-b", "listed-a", "listed-c"]
    for name in names:
        tags = [{"Key": "lesson", "Value": "05"}]
        api.create_training_job(**request(name, Tags=tags))
    for name in names:
        endpoint.wait(name)
    return names


def names(found: dict) -> list[str]:
    return [one["TrainingJobName"] for one in found["TrainingJobSummaries"]]


@pytest.mark.parametrize("call", ["describe_training_job", "stop_training_job"])
def test_a_job_that_does_not_exist(endpoint, call):
    with pytest.raises(ClientError, match="Requested resource not found") as caught:
        getattr(endpoint.client("sagemaker"), call)(TrainingJobName="unheard-of")
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_list_sorts(endpoint, listed):
    ours = {"NameContains": "LISTED-"}
    api = endpoint.client("sagemaker")
    assert names(api.list_training_jobs(**ours)) == listed[::-1]
    oldest_first = api.list_training_jobs(**ours, SortBy="CreationTime", SortOrder="Ascending")
    assert names(oldest_first) == listed
    by_name = api.list_training_jobs(**ours, SortBy="Name", SortOrder="Ascending")
    assert names(by_name) == sorted(listed)


def test_list_filters(endpoint, listed):
    api, ours = endpoint.client("sagemaker"), {"NameContains": "listed-"}
    assert names(api.list_training_jobs(**ours, StatusEquals="Completed")) == []
    assert len(names(api.list_training_jobs(**ours, StatusEquals="Failed"))) == 3
    middle = api.describe_training_job(TrainingJobName=listed[1])["CreationTime"]
    assert names(api.list_training_jobs(**ours, CreationTimeAfter=middle))[0] == listed[2]
    before = middle - datetime.timedelta(milliseconds=1)
    assert names(api.list_training_jobs(**ours, CreationTimeBefore=before)) == listed[:1]
    assert names(api.list_training_jobs(**ours, WarmPoolStatusEquals="Available")) == []


def test_list_pages(endpoint, listed):
    api = endpoint.client("sagemaker")
    pages = list(
        api.get_paginator("list_training_jobs").paginate(
            NameContains="listed-", PaginationConfig={"PageSize": 2}
        )
    )
    assert [len(names(page)) for page in pages] == [2, 1]
    assert [name for page in pages for name in names(page)] == listed[::-1]


@pytest.mark.parametrize("token", ["rubbish", "====", base64.b64encode(b"-2").decode(), "é"])
def test_a_token_that_is_none(endpoint, token):
    with pytest.raises(ClientError, match="NextToken is not one") as caught:
        endpoint.client("sagemaker").list_training_jobs(NextToken=token)
    assert caught.value.response["Error"]["Code"] == "ValidationException"


def test_tags_of_a_job(endpoint, listed):
    api = endpoint.client("sagemaker")
    arn = api.describe_training_job(TrainingJobName="listed-a")["TrainingJobArn"]
    assert api.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "lesson", "Value": "05"}]
    api.add_tags(ResourceArn=arn, Tags=[{"Key": "lesson", "Value": "06"}, _tag("owner", "me")])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("lesson", "06"), _tag("owner", "me")]
    api.delete_tags(ResourceArn=arn, TagKeys=["lesson", "unheard-of"])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("owner", "me")]


def _tag(key: str, value: str) -> dict:
    return {"Key": key, "Value": value}


def test_tags_of_a_model_are_motos(endpoint):
    api = endpoint.client("sagemaker")
    arn = api.create_model(ModelName="m", ExecutionRoleArn=request("x")["RoleArn"])["ModelArn"]
    api.add_tags(ResourceArn=arn, Tags=[_tag("lesson", "08")])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("lesson", "08")]
    api.delete_tags(ResourceArn=arn, TagKeys=["lesson"])
    assert api.list_tags(ResourceArn=arn)["Tags"] == []


@pytest.fixture(scope="module")
def job(endpoint):
    """A job that has completed, of the SDK's own estimator."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in endpoint.env.items():
            patch.setenv(name, value)
        import sagemaker

        session = sagemaker.Session(default_bucket=BUCKET)
        metric = [{"Name": "loss", "Regex": "train_loss: ([0-9.]+)"}]
        one = estimator(
            session,
            "show.py",
            instance_count=1,
            hyperparameters={"epochs": 3},
            metric_definitions=metric,
            environment={"FOO": "bar"},
            tags=[_tag("lesson", "05")],
            checkpoint_s3_uri=f"s3://{BUCKET}/checkpoints",
        )
        name = start(one)
    done = endpoint.wait(name)
    assert done.status == "Completed", done.description.get("FailureReason")
    return done


def test_describe_tells_what_was_asked_for(job):
    told = job.description
    assert told["Environment"] == {"FOO": "bar"}
    assert told["HyperParameters"]["epochs"] == "3"
    assert told["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
    assert told["InputDataConfig"][0]["ChannelName"] == "training"
    assert told["CheckpointConfig"]["S3Uri"] == f"s3://{BUCKET}/checkpoints"
    assert told["StoppingCondition"]["MaxRuntimeInSeconds"] == 86400
    assert told["EnableManagedSpotTraining"] is False
    assert "Tags" not in told


def test_describe_fits_the_documented_shape(endpoint, job):
    """Each member is of the model's type, and none is unknown to it."""
    api = endpoint.client("sagemaker")
    shape = api.meta.service_model.operation_model("DescribeTrainingJob").output_shape
    told = {key: value for key, value in job.description.items() if key != "ResponseMetadata"}
    _conforms(shape, told, "answer")
    ended = {"TrainingStartTime", "TrainingEndTime", "ModelArtifacts", "FinalMetricDataList"}
    assert ended | set(shape.required_members) <= set(told)


PYTHON_TYPES = {"string": str, "integer": int, "long": int, "float": float, "boolean": bool}
PYTHON_TYPES |= {"timestamp": datetime.datetime, "structure": dict, "map": dict, "list": list}


def _conforms(shape, value, where: str) -> None:
    assert isinstance(value, PYTHON_TYPES[shape.type_name]), where
    if shape.type_name == "structure":
        assert set(value) <= set(shape.members), where
        assert set(shape.required_members) <= set(value), where
        for name, one in value.items():
            _conforms(shape.members[name], one, f"{where}.{name}")
    elif shape.type_name == "list":
        for one in value:
            _conforms(shape.member, one, where)
    elif shape.type_name == "string" and shape.enum:
        assert value in shape.enum, where


def test_attach(job, sdk):
    from sagemaker.tensorflow import TensorFlow

    again = TensorFlow.attach(job.name, sagemaker_session=sdk)
    assert again.model_data == job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert again.hyperparameters()["epochs"] == "3"
    assert again.latest_training_job.describe()["TrainingJobStatus"] == "Completed"


def test_the_aws_command_line(endpoint, job):
    aws = Path(sys.executable).parent / "aws"
    if not aws.exists():
        pytest.skip("the AWS CLI is not installed beside this Python")
    command = ["sagemaker", "describe-training-job", "--training-job-name", job.name]
    done = subprocess.run(
        [str(aws), *command, "--output", "json"],
        env={"PATH": os.environ["PATH"], "HOME": str(endpoint.state), **endpoint.env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["TrainingJobArn"] == job.description["TrainingJobArn"]


def test_listing_while_jobs_begin(endpoint):
    """No 500 when the list changes under the reader's hands; every job is on it in the end."""
    from concurrent.futures import ThreadPoolExecutor

    api = endpoint.client("sagemaker")
    with ThreadPoolExecutor(4) as pool:
        made = [
            pool.submit(api.create_training_job, **request(f"crowd-{number}"))
            for number in range(8)
        ]
        asked = [pool.submit(api.list_training_jobs, MaxResults=100) for _ in range(20)]
        for one in made + asked:
            assert one.result()["ResponseMetadata"]["HTTPStatusCode"] == 200
    assert len(names(api.list_training_jobs(NameContains="crowd-"))) == 8
    for number in range(8):
        assert endpoint.wait(f"crowd-{number}").status == "Failed"
