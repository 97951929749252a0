"""A wrong request is refused in AWS's words, by the model that botocore carries."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, request
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.validation import check


def refused(body: object, name: str = "CreateTrainingJob") -> AwsError:
    with pytest.raises(AwsError) as caught:
        check(name, body)
    assert caught.value.status == 400
    return caught.value


def said(**changes) -> str:
    error = refused(request("a-job", **changes))
    assert error.code == "ValidationException"
    return error.message


def test_a_right_request_passes():
    body = request("a-job")
    assert check("CreateTrainingJob", body) == body


def test_a_missing_member():
    body = request("a-job")
    del body["OutputDataConfig"]
    assert refused(body).message == (
        "1 validation error detected: Value null at 'outputDataConfig' failed to satisfy "
        "constraint: Member must not be null"
    )


def test_a_missing_member_within():
    message = said(AlgorithmSpecification={"TrainingImage": "image"})
    assert "Value null at 'algorithmSpecification.trainingInputMode'" in message


def test_null_is_absent():
    body = request("a-job", InputDataConfig=None)
    body["AlgorithmSpecification"]["MetricDefinitions"] = None
    checked = check("CreateTrainingJob", body)
    assert "InputDataConfig" not in checked
    assert "MetricDefinitions" not in checked["AlgorithmSpecification"]
    assert "Value null at 'roleArn'" in said(RoleArn=None)


@pytest.mark.parametrize(
    ("name", "ok"),
    [
        ("a", True),
        ("a" * 63, True),
        ("a-1-b", True),
        ("under_score", False),
        ("-a", False),
        ("a-", False),
        ("a\n", False),
        ("", False),
        ("../../a", False),
    ],
)
def test_a_job_name(name, ok):
    if ok:
        assert check("CreateTrainingJob", request(name))["TrainingJobName"] == name
    else:
        message = refused(request(name)).message
        assert f"Value '{name}' at 'trainingJobName'" in message
        assert "Member must satisfy regular expression pattern: [a-zA-Z0-9]" in message


def test_an_instance_type_that_is_none():
    config = {"InstanceCount": 1, "InstanceType": "ml.huge.99xlarge", "VolumeSizeInGB": 1}
    message = said(ResourceConfig=config)
    assert "Value 'ml.huge.99xlarge' at 'resourceConfig.instanceType'" in message
    assert "Member must satisfy enum value set: [" in message
    assert "ml.m5.xlarge" in message


def test_too_long_and_too_small():
    assert "have length less than or equal to 63" in refused(request("a" * 64)).message
    message = said(StoppingCondition={"MaxRuntimeInSeconds": 0})
    assert "Value '0' at 'stoppingCondition.maxRuntimeInSeconds'" in message
    assert "Member must have value greater than or equal to 1" in message
    body = {"MaxResults": 101}
    assert "value less than or equal to 100" in refused(body, "ListTrainingJobs").message


def test_too_many():
    channel = {
        "DataSource": {
            "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data"},
        }
    }
    many = [channel | {"ChannelName": f"c{number}"} for number in range(21)]
    message = said(InputDataConfig=many)
    assert "at 'inputDataConfig' failed" in message
    assert "length less than or equal to 20" in message
    assert "at 'hyperParameters.long.member'" in said(HyperParameters={"long": "x" * 2501})


@pytest.mark.parametrize(
    "changes",
    [
        {"HyperParameters": {"epochs": 3}},
        {"HyperParameters": []},
        {"ResourceConfig": {"InstanceCount": "1", "InstanceType": "ml.m5.xlarge"}},
        {"ResourceConfig": {"InstanceCount": True, "InstanceType": "ml.m5.xlarge"}},
        {"EnableManagedSpotTraining": "yes"},
        {"InputDataConfig": {"ChannelName": "a"}},
        {"RoleArn": 5},
        {"Tags": [None]},
    ],
)
def test_a_wrong_json_type(changes):
    error = refused(request("a-job", **changes))
    assert error.code == "SerializationException"
    assert "can not be converted to" in error.message


def test_several_errors_at_once():
    config = {"InstanceCount": -1, "InstanceType": "ml.none", "VolumeSizeInGB": 1}
    message = said(RoleArn="no", ResourceConfig=config, TrainingJobName="_")
    assert message.startswith("5 validation errors detected: Value '_' at 'trainingJobName'")
    for place in ("roleArn", "resourceConfig.instanceType", "resourceConfig.instanceCount"):
        assert f"at '{place}' failed to satisfy constraint" in message
    assert message.count("; Value ") == 4


CHANNEL = {
    "ChannelName": "training",
    "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/data"}},
}
IMAGE = {"TrainingImage": "registry.invalid/x:2.12-cpu", "TrainingInputMode": "File"}
RESOURCES = {"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 1}


def with_source(**changes) -> dict:
    source = CHANNEL["DataSource"]["S3DataSource"] | changes
    return CHANNEL | {"DataSource": {"S3DataSource": source}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"AlgorithmSpecification": {"TrainingInputMode": "File"}}, "needs TrainingImage"),
        ({"HyperParameters": {}}, "no sagemaker_program"),
        ({"HyperParameters": {"sagemaker_program": "a.py"}}, "no sagemaker_submit_directory"),
        ({"ResourceConfig": {"VolumeSizeInGB": 1}}, "ResourceConfig needs InstanceType"),
        ({"ResourceConfig": RESOURCES | {"InstanceCount": 0}}, "InstanceCount is 0"),
        ({"ResourceConfig": RESOURCES | {"InstanceCount": 500}}, "InstanceCount is 500"),
        (
            {
                "AlgorithmSpecification": IMAGE
                | {"MetricDefinitions": [{"Name": "loss", "Regex": "loss: ("}]}
            },
            r"Regex 'loss: \(' of metric 'loss' is invalid",
        ),
        (
            {
                "AlgorithmSpecification": IMAGE
                | {"MetricDefinitions": [{"Name": "loss", "Regex": "loss: .*"}]}
            },
            "of metric 'loss' has no group",
        ),
        ({"InputDataConfig": [CHANNEL | {"InputMode": "Pipe"}]}, "Use FastFile"),
        (
            {
                "AlgorithmSpecification": IMAGE | {"TrainingInputMode": "Pipe"},
                "InputDataConfig": [CHANNEL],
            },
            "Use FastFile",
        ),
        ({"InputDataConfig": [CHANNEL, CHANNEL]}, "a name of its own"),
        ({"InputDataConfig": [CHANNEL | {"ChannelName": ".."}]}, "a name of its own"),
        ({"InputDataConfig": [CHANNEL | {"DataSource": {}}]}, "S3DataSource only"),
        ({"InputDataConfig": [with_source(S3Uri="s3://A_b/x")]}, "No S3 objects found"),
        (
            {"InputDataConfig": [with_source(S3DataType="AugmentedManifestFile")]},
            "AugmentedManifestFile is not offered",
        ),
    ],
)
def test_what_no_schema_says(endpoint, changes, reason):
    api = endpoint.client("sagemaker")
    with pytest.raises(ClientError, match=reason) as caught:
        api.create_training_job(**request("refused", **changes))
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    with pytest.raises(ClientError, match="Requested resource not found"):
        api.describe_training_job(TrainingJobName="refused")
