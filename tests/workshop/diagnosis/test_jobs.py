"""A job's description and log are all that can be read of it; here a client that has both."""

from types import SimpleNamespace
from unittest import mock

import pytest
from botocore.exceptions import ClientError

from workshop.diagnosis.answer import diagnose
from workshop.diagnosis.evidence import NoEvidence

ALONE = '{"event": "start", "world_size": 1, "global_batch_size": 64}'


class Clients:
    """Of SageMaker and of CloudWatch Logs, for one job."""

    def __init__(self, description: dict, lines: list[str]) -> None:
        self.description, self.lines = description, lines
        self.exceptions = SimpleNamespace(ResourceNotFoundException=KeyError)

    def client(self, service: str) -> "Clients":
        return self

    def describe_training_job(self, TrainingJobName: str) -> dict:
        if TrainingJobName != "job":
            error = {"Code": "ValidationException", "Message": "Requested resource not found."}
            raise ClientError({"Error": error}, "DescribeTrainingJob")
        return self.description

    def get_paginator(self, name: str) -> "Clients":
        return self

    def paginate(self, **_) -> list:
        return [{"logStreams": [{"logStreamName": "job/algo-1-123"}]}]

    def get_log_events(self, **_) -> dict:
        events = [{"message": line, "timestamp": 0} for line in self.lines]
        self.lines = []
        return {"events": events, "nextForwardToken": "end"}


def job(status: str, *lines: str, instances: int = 1, reason: str = "") -> "Clients":
    resources = {"InstanceCount": instances}
    description = {"TrainingJobStatus": status, "ResourceConfig": resources}
    return Clients(description | ({"FailureReason": reason} if reason else {}), list(lines))


@pytest.mark.parametrize(
    ("session", "cause"),
    [
        (job("Completed", ALONE, instances=2), "ranks do not know each other"),
        (job("Completed", ALONE), ""),
        (job("Completed", "warning: FileNotFoundError was handled"), ""),
        (job("InProgress"), ""),
        (job("InProgress", "Cannot connect to host algo-2"), "security group"),
        (job("Failed", reason="ClientError: No S3 objects found under S3 URL"), "S3 path"),
        (
            job("Failed", reason="Data download failed: check the S3 VPC endpoint"),
            "no way to S3",
        ),
        (
            job(
                "Failed", "Stalled ops", "tensors were submitted to be reduced: [missing ranks: 1]"
            ),
            "horovod stall",
        ),
        (job("Failed", reason="InstallRequirementsError: exit 1"), "package index not reached"),
        (job("Failed", reason="CapacityError: no capacity"), "quota"),
        (
            job("Failed", reason="ExitCode 1: Timed out waiting 25 ms"),
            "a rank did not come",
        ),
        (job("Failed", reason="AlgorithmError: ExitCode 137"), "a rank was killed"),
        (job("Failed", "Killed process 812 (python)", reason="ExitCode 137"), "out of memory"),
        (job("Failed", reason="Please use an instance type with more memory"), "out of memory"),
    ],
)
def test_a_job_is_judged_by_its_description_and_log(session, cause):
    answer = diagnose("job", session)
    assert answer.cause == cause
    assert "TORCH_FR_BUFFER_SIZE" in str(answer), "what makes the next job tell more"


def test_on_aws_it_is_said_what_makes_the_next_job_tell_more():
    """Of a job whose ranks are not recorded only the log is known."""
    text = str(diagnose("job", job("InProgress", "epoch 1")))
    assert "ranks are not recorded" in text and "log: epoch 1" in text
    for word in ("TORCH_FR_BUFFER_SIZE", "NCCL_DEBUG", "enable_remote_debug", "timeout"):
        assert word in text


def test_another_seats_job():
    error = {"Code": "AccessDeniedException", "Message": "is not authorized to perform"}
    refusal = ClientError({"Error": error}, "DescribeTrainingJob")
    client = job("InProgress")
    client.describe_training_job = mock.Mock(side_effect=refusal)
    with pytest.raises(NoEvidence, match="another seat's: ask as that seat"):
        diagnose("job", client)


def test_a_record_that_another_user_removed_or_closed_leaves_the_log(tmp_path):
    client = job("InProgress", "epoch 1")
    client.description["Environment"] = {"WORKSHOP_RECORD": str(tmp_path)}
    text = str(diagnose("job", client))
    assert "log: epoch 1" in text and "holds no rank" in text


def test_a_job_that_is_not_there():
    with pytest.raises(NoEvidence, match=r"not found.*workshop jobs"):
        diagnose("another", job("Completed"))


def test_an_estimator_without_a_job():
    with pytest.raises(NoEvidence, match="has no job yet"):
        diagnose(SimpleNamespace(latest_training_job=None))
