"""What the emulator never answers: a deletion that takes its time.

Requests and answers are checked against SageMaker's own model.
"""

from types import SimpleNamespace

import boto3
import pytest
from botocore.stub import Stubber

from workshop.account import cleanup, resources
from workshop.account.resources import NotDeleted

NAME = "workshop-me-a-2026"
ARN = "arn:aws:sagemaker:us-east-1:" + "0" * 12 + ":training-job/" + NAME
SUMMARY = {
    "TrainingJobName": NAME,
    "TrainingJobArn": ARN,
    "CreationTime": 0,
    "TrainingJobStatus": "Completed",
}
DESCRIPTION = {
    **SUMMARY,
    "ModelArtifacts": {"S3ModelArtifacts": "s3://b/m"},
    "SecondaryStatus": "Completed",
    "AlgorithmSpecification": {"TrainingInputMode": "File"},
    "ResourceConfig": {"VolumeSizeInGB": 1},
    "StoppingCondition": {},
}
TYPES = {each.kind: each for each in resources.TYPES}


@pytest.fixture
def sagemaker(monkeypatch):
    """The account of a seat whose only client is SageMaker's, and that client's answers."""
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("sagemaker", region_name="us-east-1", **keys)
    session = SimpleNamespace(
        seat="me", job_prefix="workshop-me-", target="local", client=lambda _: client
    )
    monkeypatch.setattr(resources.time, "sleep", lambda _: None)
    monkeypatch.setattr(resources.Account, "streams", lambda *_: [])  # the job's log is gone
    with Stubber(client) as stub:
        yield resources.Account(session), stub
        stub.assert_no_pending_responses()


def described(stub, *changes):
    """DescribeTrainingJob answers so, one after the other; None: there is no such job."""
    for change in changes:
        if change is None:
            no = "Requested resource not found."
            stub.add_client_error("describe_training_job", "ValidationException", no)
        else:
            stub.add_response("describe_training_job", DESCRIPTION | change)


def status(text):
    return {"TrainingJobStatus": text}


@pytest.mark.parametrize(
    ("before", "after", "refused"),
    [
        ("Completed", ["Deleting", None], ""),
        ("Deleting", ["Deleting", None], ""),
        (None, [], ""),
        ("Completed", ["Deleting", "Deleting"], "still Deleting after"),
    ],
)
def test_a_record_is_gone_when_it_cannot_be_described(
    sagemaker, monkeypatch, before, after, refused
):
    account, stub = sagemaker
    described(stub, before and status(before))
    if before == "Completed":
        stub.add_response("delete_training_job", {}, {"TrainingJobName": NAME})
    described(stub, *(text and status(text) for text in after))
    monkeypatch.setattr(resources, "WAIT_SECONDS", 1)  # two looks
    _delete(account, "records of training jobs", refused)


@pytest.mark.parametrize("end", ["Stopped", "Completed", "Failed", None])
def test_a_job_that_runs_is_stopped_however_it_ends(sagemaker, end):
    account, stub = sagemaker
    described(stub, status("InProgress"))
    stub.add_response("stop_training_job", {}, {"TrainingJobName": NAME})
    described(stub, status("Stopping"), end and status(end))
    _delete(account, "running training jobs")


def test_a_job_that_is_being_deleted_does_not_run(sagemaker):
    account, stub = sagemaker
    some = [SUMMARY | status(text) for text in ("Deleting", "Completed", "Failed")]
    stub.add_response("list_training_jobs", {"TrainingJobSummaries": some})
    assert cleanup.look(account, TYPES["running training jobs"]) == ([], [])


def _delete(account, kind, refused=""):
    if refused:
        with pytest.raises(NotDeleted, match=refused):
            TYPES[kind].delete(account, NAME)
        return
    with resources.gone_is_fine():
        TYPES[kind].delete(account, NAME)
