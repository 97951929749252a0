"""A wrong request is refused in AWS's words, by the model that botocore carries."""

import pytest
from botocore.exceptions import ClientError
from emulator_harness import request

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.validation import check
from local_sagemaker.pytest_plugin import BUCKET
from local_sagemaker.training.connectivity import BANDWIDTH
from local_sagemaker.training.shared_folder import VARIABLE as FOLDER


def refused(body: object, name: str = "CreateTrainingJob") -> AwsError:
    with pytest.raises(AwsError) as caught:
        check(name, body)
    assert caught.value.status == 400
    return caught.value


@pytest.mark.parametrize("name", ["a", "a" * 63, "a-1-b"])
def test_a_right_request_passes(name):
    body = request(name)
    assert check("CreateTrainingJob", body) == body


def test_null_is_absent():
    body = request("a-job", InputDataConfig=None)
    body["AlgorithmSpecification"]["MetricDefinitions"] = None
    checked = check("CreateTrainingJob", body)
    assert "InputDataConfig" not in checked
    assert "MetricDefinitions" not in checked["AlgorithmSpecification"]
    assert refused(request("a-job", OutputDataConfig=None)).message == (
        "1 validation error detected: Value null at 'outputDataConfig' failed to satisfy "
        "constraint: Member must not be null"
    )


NAME = "satisfy regular expression pattern: [a-zA-Z0-9]"


@pytest.mark.parametrize(
    ("changes", "where", "must"),
    [
        *(
            ({"TrainingJobName": name}, f"'{name}' at 'trainingJobName'", NAME)
            for name in ("under_score", "-a", "a-", "a\n", "", "../../a")
        ),
        ({"TrainingJobName": "a" * 64}, "at 'trainingJobName'", "length less than or equal to 63"),
        ({"RoleArn": None}, "null at 'roleArn'", "not be null"),
        (
            {"AlgorithmSpecification": {"TrainingImage": "image"}},
            "null at 'algorithmSpecification.trainingInputMode'",
            "not be null",
        ),
        (
            {"ResourceConfig": {"InstanceType": "ml.huge.99xlarge"}},
            "'ml.huge.99xlarge' at 'resourceConfig.instanceType'",
            "satisfy enum value set: [",
        ),
        (
            {"StoppingCondition": {"MaxRuntimeInSeconds": 0}},
            "'0' at 'stoppingCondition.maxRuntimeInSeconds'",
            "have value greater than or equal to 1",
        ),
        (
            {"HyperParameters": {"long": "x" * 2501}},
            "at 'hyperParameters.long.member'",
            "length less than or equal to 2500",
        ),
        ({"InputDataConfig": [{}] * 21}, "at 'inputDataConfig'", "length less than or equal to 20"),
    ],
)
def test_a_constraint_that_is_not_met(changes, where, must):
    error = refused(request("a-job", **changes))
    assert error.code == "ValidationException"
    assert where in error.message and must in error.message


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
    message = refused(request("_", RoleArn="no", ResourceConfig=config)).message
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
SPOT = {"EnableManagedSpotTraining": True}
WARM = {"ResourceConfig": RESOURCES | {"KeepAlivePeriodInSeconds": 60}}
RULE = {"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": "image"}
HOOK = {"S3OutputPath": "s3://b/x", "CollectionConfigurations": [{"CollectionName": "losses"}]}
BOARD = {"S3OutputPath": "s3://b/x", "LocalPath": "/tmp/board"}


def algorithm(**members) -> dict:
    return {"AlgorithmSpecification": IMAGE | members}


def metric(regex: str) -> dict:
    return algorithm(MetricDefinitions=[{"Name": "loss", "Regex": regex}])


def stopping(run: int, wait: int) -> dict:
    return {"StoppingCondition": {"MaxRuntimeInSeconds": run, "MaxWaitTimeInSeconds": wait}}


def environment(name: str, value: str) -> dict:
    return {"Environment": {name: value}}


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
        (
            {"ResourceConfig": RESOURCES | {"InstanceCount": 500}},
            "is 20 Instances, .* and a request delta of 500 .* stop one",
        ),
        (metric("loss: ("), r"Regex 'loss: \(' of metric 'loss' is invalid"),
        (metric("*"), "of metric 'loss' is invalid"),
        (metric("loss: .*"), "of metric 'loss' has no group"),
        ({"InputDataConfig": [CHANNEL | {"InputMode": "Pipe"}]}, "Use FastFile"),
        (algorithm(TrainingInputMode="Pipe") | {"InputDataConfig": [CHANNEL]}, "Use FastFile"),
        ({"InputDataConfig": [CHANNEL, CHANNEL]}, "a name of its own"),
        ({"InputDataConfig": [CHANNEL | {"ChannelName": ".."}]}, "a name of its own"),
        ({"InputDataConfig": [CHANNEL | {"DataSource": {}}]}, "S3DataSource only"),
        *(
            ({"InputDataConfig": [with_source(S3Uri=uri)]}, "No S3 objects found under S3 URL")
            for uri in ("s3://A_b/x", "s3://no-such-bucket-here/data", f"s3://{BUCKET}/no/such")
        ),
        (
            {"InputDataConfig": [with_source(S3DataType="AugmentedManifestFile")]},
            "AugmentedManifestFile is not offered",
        ),
        (algorithm(ContainerArguments=["a"]), "ContainerArguments and no ContainerEntrypoint"),
        (stopping(60, 60), "only supported when EnableManagedSpotTraining"),
        (SPOT, "it must be given"),
        (SPOT | stopping(60, 59), "not be below MaxRuntimeInSeconds"),
        (SPOT | WARM | stopping(60, 60), "cannot be made of spot instances"),
        (environment(BANDWIDTH, "20mb"), f"{BANDWIDTH}: '20mb' is"),
        *(
            (environment(FOLDER, folder), "be the absolute path of a fold")
            for folder in ("relative", "/no/such/folder", __file__)
        ),
        (
            {"VpcConfig": {"Subnets": ["subnet-0123abcd"], "SecurityGroupIds": ["sg-0123abcd"]}},
            "VpcConfig: .*0123abcd",
        ),
        # What a job would do without on this machine:
        ({"DebugRuleConfigurations": [RULE]}, "leave the estimator's rules out"),
        ({"ProfilerRuleConfigurations": [RULE]}, "leave the estimator's rules out"),
        ({"DebugHookConfig": HOOK}, "TensorBoardOutputConfig"),
        ({"ExperimentConfig": {"ExperimentName": "e"}}, "leave experiment_config out"),
        ({"TensorBoardOutputConfig": BOARD}, "copies /opt/ml/output/tensorboard only"),
    ],
)
def test_what_no_schema_says(api, changes, reason):
    with pytest.raises(ClientError, match=reason) as caught:
        api.create_training_job(**request("refused", **changes))
    error = caught.value.response
    code = "ResourceLimitExceeded" if "delta" in reason else "ValidationException"
    assert (error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"]) == (400, code)
    with pytest.raises(ClientError, match="Requested resource not found"):
        api.describe_training_job(TrainingJobName="refused")
