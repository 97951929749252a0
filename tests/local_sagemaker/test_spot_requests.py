"""Requests for spot instances and warm pools: what is refused, and what is taken."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import request
from local_sagemaker.jobs import spot
from local_sagemaker.protocol.errors import AwsError

RESOURCES = request("a")["ResourceConfig"]
SPOT = {"EnableManagedSpotTraining": True}
WARM = {"ResourceConfig": RESOURCES | {"KeepAlivePeriodInSeconds": 60}}


def stopping(run: int, wait: int) -> dict:
    return {"StoppingCondition": {"MaxRuntimeInSeconds": run, "MaxWaitTimeInSeconds": wait}}


REFUSED = {
    "waits without spot": (stopping(60, 60), "only supported when EnableManagedSpotTraining"),
    "spot without waiting": (SPOT, "it must be given"),
    "waits less than it runs": (SPOT | stopping(60, 59), "not be below MaxRuntimeInSeconds"),
    "a warm pool of spot": (SPOT | WARM | stopping(60, 60), "cannot be made of spot instances"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_contradicts_itself_is_refused(name):
    changes, said = REFUSED[name]
    with pytest.raises(AwsError) as caught:
        spot.check(request("a-job", **changes))
    assert caught.value.code == "ValidationException" and said in caught.value.message


@pytest.mark.parametrize("changes", [{}, WARM, SPOT | stopping(60, 60), SPOT | stopping(60, 61)])
def test_the_rest_is_taken(changes):
    spot.check(request("a-job", **changes))


def test_the_endpoint_asks_this(endpoint):
    api = endpoint.client("sagemaker")
    with pytest.raises(ClientError, match="only supported when EnableManagedSpotTraining"):
        api.create_training_job(**request("waits", **stopping(60, 60)))
    assert api.list_training_jobs(NameContains="waits")["TrainingJobSummaries"] == []
