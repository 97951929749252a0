"""Spot in job_settings: what the request holds."""

import pytest
from sagemaker.estimator import EstimatorBase
from sagemaker.pytorch import PyTorch

from workshop.account import preflight
from workshop.jobs.job_preview import preview_session
from workshop.jobs.session import MAX_RUN_SECONDS


@pytest.fixture
def opened(clean_aws):
    return preview_session("aws", seat="tests")


def requested(opened, **settings) -> dict:
    """The request of a job with these settings."""
    built = PyTorch(
        entry_point="train_torch.py",
        framework_version="2.2.0",
        py_version="py310",
        instance_type="ml.c5.xlarge",
        instance_count=1,
        **opened.job_settings("own", **settings),
    )
    assert preflight.all_ok(preflight.check(preflight.JobConfiguration.from_estimator(built)))
    EstimatorBase.fit.__wrapped__(built, wait=False)  # without telemetry
    return opened.requests[-1]


def test_the_usual_way_is_on_demand_with_a_limit_and_tags(opened):
    request = requested(opened)
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": MAX_RUN_SECONDS}
    assert request.get("EnableManagedSpotTraining", False) is False
    assert "CheckpointConfig" not in request
    assert "KeepAlivePeriodInSeconds" not in request["ResourceConfig"]
    assert {"Key": "seat", "Value": "tests"} in request["Tags"]


def test_spot_waits_bounded_and_keeps_checkpoints_of_its_own(opened):
    request, other = requested(opened, spot=True), requested(opened, spot=True)
    assert request["EnableManagedSpotTraining"] is True
    stopping = request["StoppingCondition"]
    assert stopping["MaxWaitTimeInSeconds"] >= stopping["MaxRuntimeInSeconds"] == MAX_RUN_SECONDS
    place = request["CheckpointConfig"]["S3Uri"]
    assert place.startswith(f"s3://{opened.bucket}/jobs/checkpoints/own-")
    assert other["CheckpointConfig"]["S3Uri"] != place, "a new job must not resume from an old one"
