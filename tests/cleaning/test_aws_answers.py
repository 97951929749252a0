"""What the local endpoint never answers: warm pools, a deletion that takes its time.

Requests and answers are checked against SageMaker's own model.
"""

from types import SimpleNamespace

import boto3
import pytest
from botocore.stub import Stubber

from workshop.account import stacks
from workshop.cleaning import jobs, records, things
from workshop.cleaning.things import NotDeleted, Thing

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


@pytest.fixture
def sagemaker():
    """A client whose answers and requests are checked against SageMaker's model."""
    keys = {"aws_access_key_id": "x", "aws_secret_access_key": "x"}
    client = boto3.client("sagemaker", region_name="us-east-1", **keys)
    with Stubber(client) as stub:
        yield client, stub
        stub.assert_no_pending_responses()


@pytest.fixture
def session(sagemaker, monkeypatch):
    """A session whose only client is that one."""
    client, _ = sagemaker
    monkeypatch.setattr(jobs.time, "sleep", lambda _: None)
    return SimpleNamespace(
        seat="me", job_prefix="workshop-me-", target="local", client=lambda _: client
    )


@pytest.fixture
def step(session):
    return jobs.WarmPools(session)


@pytest.fixture
def record(session, monkeypatch):
    """The step that deletes records, of a job whose log is gone."""
    monkeypatch.setattr(records.JobRecords, "_has_log", lambda self, job: False)
    return records.JobRecords(session)


def warm(status):
    return {"WarmPoolStatus": {"Status": status}}


def test_a_pool_that_waits_is_found_and_one_that_is_over_is_not(step, sagemaker):
    stub = sagemaker[1]
    other = SUMMARY | {"TrainingJobName": "workshop-me-b"} | warm("Terminated")
    cold = SUMMARY | {"TrainingJobName": "workshop-me-c"}
    listed = {"TrainingJobSummaries": [SUMMARY | warm("Available"), other, cold]}
    stub.add_response("list_training_jobs", listed, {"NameContains": "workshop-me-"})
    stub.add_response("list_tags", {"Tags": stacks.tags("me")}, {"ResourceArn": ARN})
    (found,) = step.find().ours
    assert (found.name, found.usd_per_month) == (NAME, None)
    assert "billed" in found.note


def test_it_is_ended_by_keeping_it_for_no_time(step, sagemaker):
    stub = sagemaker[1]
    asked = {"TrainingJobName": NAME, "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
    stub.add_response("update_training_job", {"TrainingJobArn": ARN}, asked)
    for status in ("Available", "Terminated"):
        stub.add_response("describe_training_job", DESCRIPTION | warm(status))
    step.delete(Thing(step.kind, NAME))


def test_one_that_goes_on_is_told(step, sagemaker, monkeypatch):
    stub = sagemaker[1]
    monkeypatch.setattr(jobs, "WAIT_SECONDS", -1)
    stub.add_response("update_training_job", {"TrainingJobArn": ARN})
    stub.add_response("describe_training_job", DESCRIPTION | warm("Available"))
    with pytest.raises(NotDeleted, match="the warm pool has not ended after"):
        step.delete(Thing(step.kind, NAME))


def gone(stub):
    message = "Requested resource not found."
    stub.add_client_error("describe_training_job", "ValidationException", message)


def test_a_record_is_gone_when_it_cannot_be_described_any_more(record, sagemaker):
    stub = sagemaker[1]
    stub.add_response("describe_training_job", DESCRIPTION)
    stub.add_response("delete_training_job", {}, {"TrainingJobName": NAME})
    stub.add_response("describe_training_job", DESCRIPTION | {"TrainingJobStatus": "Deleting"})
    gone(stub)
    record.delete(Thing(record.kind, NAME))


def test_a_record_that_is_being_deleted_is_waited_for(record, sagemaker):
    stub = sagemaker[1]
    deleting = SUMMARY | {"TrainingJobStatus": "Deleting"}
    stub.add_response("list_training_jobs", {"TrainingJobSummaries": [deleting]})
    stub.add_response("list_tags", {"Tags": stacks.tags("me")})
    (found,) = record.find().ours
    for _ in range(2):
        stub.add_response("describe_training_job", DESCRIPTION | deleting)
    gone(stub)
    record.delete(found)


def test_a_record_that_stays_is_told(record, sagemaker, monkeypatch):
    stub = sagemaker[1]
    monkeypatch.setattr(things, "WAIT_SECONDS", -1)
    stub.add_response("describe_training_job", DESCRIPTION)
    stub.add_response("delete_training_job", {})
    stub.add_response("describe_training_job", DESCRIPTION | {"TrainingJobStatus": "Deleting"})
    with pytest.raises(NotDeleted, match="still Deleting"):
        record.delete(Thing(record.kind, NAME))


def test_a_job_that_is_being_deleted_does_not_run(session, sagemaker):
    stub = sagemaker[1]
    some = [
        SUMMARY | {"TrainingJobStatus": status} for status in ("Deleting", "Completed", "Failed")
    ]
    stub.add_response("list_training_jobs", {"TrainingJobSummaries": some})
    assert jobs.RunningJobs(session).find().ours == []
