"""DeleteTrainingJob: only what has ended, and then nothing of it is left: no restart finds it."""

import time

import pytest
from botocore.exceptions import ClientError
from emulator_harness import command_request, request

from local_sagemaker.pytest_plugin import FINAL


def ended(emulator, name, **changes):
    """A job that was stopped before its script began."""
    api = emulator.client("sagemaker")
    arn = api.create_training_job(**request(name, **changes))["TrainingJobArn"]
    api.stop_training_job(TrainingJobName=name)
    assert emulator.wait(name).status in FINAL
    return arn


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"]


def test_a_job_that_has_ended_can_be_deleted_and_its_name_used_again(emulator):
    api = emulator.client("sagemaker")
    ended(emulator, "gone", Tags=[{"Key": "lesson", "Value": "99"}])
    folder = emulator.state / "jobs" / "gone"
    assert folder.is_dir()
    api.delete_training_job(TrainingJobName="gone")
    assert not folder.exists()
    assert refusal(api.describe_training_job, TrainingJobName="gone") == "ValidationException"
    assert api.list_training_jobs(NameContains="gone")["TrainingJobSummaries"] == []
    arn = ended(emulator, "gone")
    assert api.list_tags(ResourceArn=arn)["Tags"] == []


def test_the_tags_of_a_deleted_job_are_gone_with_it(emulator):
    api = emulator.client("sagemaker")
    arn = ended(emulator, "tagged")
    api.delete_training_job(TrainingJobName="tagged")
    for call, extra in [
        (api.list_tags, {}),
        (api.add_tags, {"Tags": [{"Key": "a", "Value": "b"}]}),
        (api.delete_tags, {"TagKeys": ["a"]}),
    ]:
        assert refusal(call, ResourceArn=arn, **extra) == "ValidationException"


def test_a_job_that_is_not_there(emulator):
    api = emulator.client("sagemaker")
    assert refusal(api.delete_training_job, TrainingJobName="never") == "ResourceNotFound"
    assert refusal(api.delete_training_job, TrainingJobName="no_such") == "ValidationException"


@pytest.mark.namespaces
def test_a_job_that_runs_is_kept(emulator):
    api = emulator.client("sagemaker")
    api.create_training_job(**command_request("runs", ["sleep", "600"]))
    deadline = time.monotonic() + 180
    while api.describe_training_job(TrainingJobName="runs")["SecondaryStatus"] != "Training":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert refusal(api.delete_training_job, TrainingJobName="runs") == "ResourceInUse"
    api.stop_training_job(TrainingJobName="runs")
    assert emulator.wait("runs").status in FINAL
    api.delete_training_job(TrainingJobName="runs")
    assert not (emulator.state / "jobs" / "runs").exists()
