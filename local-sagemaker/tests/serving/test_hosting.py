"""Endpoints of models without a framework: life, answers, several at once, tags, deletion."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError
from serving_helpers import TRIPLE, script

from endpoint_harness import processes_with, until_gone
from local_sagemaker.api.runtime import body_limit


@pytest.fixture(scope="module")
def triple(served):
    """An endpoint in service, and its name."""
    found = served.deploy(served.model("triple-1", script(TRIPLE)))
    assert found["EndpointStatus"] == "InService", found.get("FailureReason")
    return "triple-1"


def test_an_endpoint_answers(served, triple):
    reply = served.raw(triple, "[1, 2.5]", Accept="application/json")
    assert reply["Body"].read() == b"[3, 7.5]"
    assert reply["ContentType"] == "application/json"
    assert reply["InvokedProductionVariant"] == "AllTraffic"


def test_it_is_described_and_listed(served, triple):
    found = served.api.describe_endpoint(EndpointName=triple)
    assert found["EndpointConfigName"] == triple and "FailureReason" not in found
    assert found["ProductionVariants"] == [
        {"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 1}
    ]
    named = served.api.list_endpoints(NameContains="TRIPLE-1", StatusEquals="InService")
    assert [one["EndpointName"] for one in named["Endpoints"]] == [triple]
    assert served.api.list_endpoints(StatusEquals="Failed", NameContains=triple)["Endpoints"] == []


def test_a_description_leaves_out_what_was_not_given(served, triple):
    """The SDK 3 reads each structure that is there, and its members are required."""
    model = served.api.describe_model(ModelName=triple)
    config = served.api.describe_endpoint_config(EndpointConfigName=triple)
    for found in (model, config):
        assert not [name for name, value in found.items() if value in ({}, [], None)]
    assert model["PrimaryContainer"]["ModelDataUrl"] and config["ProductionVariants"]
    assert served.api.list_notebook_instances()["NotebookInstances"] == []


def test_its_tags(served, triple):
    arn = served.api.describe_endpoint(EndpointName=triple)["EndpointArn"]
    served.api.add_tags(ResourceArn=arn, Tags=[{"Key": "seat", "Value": "me"}])
    assert served.api.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "seat", "Value": "me"}]
    served.api.delete_tags(ResourceArn=arn, TagKeys=["seat"])
    assert served.api.list_tags(ResourceArn=arn)["Tags"] == []


def test_many_at_once_get_each_its_own_answer(served, triple):
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda number: served.ask(triple, [number]), range(320)))
    assert found == [[3 * number] for number in range(320)]


def test_a_handler_that_raises(served, triple):
    with pytest.raises(ClientError) as refused:
        served.raw(triple, "no json")
    told = refused.value.response
    assert told["Error"]["Code"] == "ModelError"
    assert told["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert told["OriginalStatusCode"] == 500
    assert told["OriginalMessage"].startswith("Expecting value: line 1 column 1")
    message = told["Error"]["Message"]
    assert message.startswith('Received server error (500) from primary with message "Expecting')
    assert f"group=/aws/sagemaker/Endpoints/{triple} in account" in message
    served.until_log(triple, "JSONDecodeError")
    assert served.ask(triple, [1]) == [3]  # and goes on


def test_no_such_endpoint(served):
    with pytest.raises(ClientError, match=r"Endpoint nowhere of account \d+ not found") as refused:
        served.ask("nowhere", [1])
    assert refused.value.response["Error"]["Code"] == "ValidationError"
    with pytest.raises(ClientError, match=r'Could not find endpoint "arn:aws:sagemaker:.*nowhere"'):
        served.api.describe_endpoint(EndpointName="nowhere")
    with pytest.raises(ClientError, match="Could not find endpoint"):
        served.api.delete_endpoint(EndpointName="nowhere")


def test_a_body_over_the_limit(served, triple):
    assert body_limit() >= 6 * 1024 * 1024
    most = b"[" + b" " * (body_limit() - 3) + b"1]"
    assert served.raw(triple, most)["Body"].read() == b"[3]"
    with pytest.raises(ClientError) as refused:
        served.raw(triple, most + b" ")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413
    assert str(body_limit()) in refused.value.response["Error"]["Message"]


def test_the_wrong_variant(served, triple):
    assert served.ask(triple, [1], TargetVariant="AllTraffic") == [3]
    with pytest.raises(ClientError, match="Variant other not found"):
        served.ask(triple, [1], TargetVariant="other")


def test_names_that_are_taken(served, triple):
    with pytest.raises(ClientError, match="Cannot create already existing endpoint configuration"):
        served.deploy(triple)
    with pytest.raises(ClientError, match="Cannot create already existing model"):
        served.model(triple, script(TRIPLE))
    with pytest.raises(ClientError, match='Cannot create already existing endpoint "arn'):
        served.api.create_endpoint(EndpointName=triple, EndpointConfigName=triple)


def test_requests_that_are_refused(served, triple):
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        served.api.create_endpoint(EndpointName="refused-1", EndpointConfigName="nothing")
    two = [
        {"VariantName": name, "ModelName": triple, "InstanceType": "ml.m5.large"} for name in "ab"
    ]
    two = [one | {"InitialInstanceCount": 1} for one in two]
    served.api.create_endpoint_config(EndpointConfigName="two-1", ProductionVariants=two)
    with pytest.raises(ClientError, match="does not offer several ProductionVariants"):
        served.api.create_endpoint(EndpointName="refused-1", EndpointConfigName="two-1")
    with pytest.raises(ClientError, match="does not offer UpdateEndpoint"):
        served.api.update_endpoint(EndpointName=triple, EndpointConfigName="two-1")
    body = {"ModelName": "refused-1", "PrimaryContainer": {"Environment": {"1x": "y"}}}
    with pytest.raises(ClientError, match="regular expression pattern"):
        served.api.create_model(**body, ExecutionRoleArn="arn:aws:iam::" + "0" * 12 + ":role/any")
    assert served.api.list_endpoints(NameContains="refused-1")["Endpoints"] == []


def test_nothing_is_left_of_a_deleted_endpoint(served):
    began = """
import subprocess
def model_fn(model_dir): return subprocess.Popen(["sleep", "600"], start_new_session=True)
def transform_fn(model, data, content_type, accept): return "[]"
"""
    found = served.deploy(served.model("deleted-1", script(began)))
    assert found["EndpointStatus"] == "InService", found.get("FailureReason")
    assert len(processes_with("endpoint/deleted-1")) == 2
    served.api.delete_endpoint(EndpointName="deleted-1")
    until_gone("endpoint/deleted-1")
    assert not (served.endpoint.state / "endpoints" / "deleted-1").exists()
    with pytest.raises(ClientError, match="Could not find endpoint"):
        served.api.describe_endpoint(EndpointName="deleted-1")
    with pytest.raises(ClientError, match="of account"):
        served.ask("deleted-1", [1])
