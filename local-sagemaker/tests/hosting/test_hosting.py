"""Endpoints of models without a framework: life, answers, several at once, tags, deletion."""

import contextlib
import http.client
import json
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from botocore.exceptions import ClientError
from emulator_harness import client_of, processes_with, until, until_gone
from hosting_helpers import TRIPLE, script

from local_sagemaker.api.runtime import body_limit
from local_sagemaker.hosting.runtime.http import KEY


@pytest.fixture(scope="module")
def triple(served):
    """An endpoint in service, and its name."""
    description = served.deploy(served.model("triple-1", script(TRIPLE)))
    assert description["EndpointStatus"] == "InService", description.get("FailureReason")
    return "triple-1"


def test_an_endpoint_answers(served, triple):
    reply = served.raw(triple, "[1, 2.5]", Accept="application/json")
    assert reply["Body"].read() == b"[3, 7.5]"
    assert reply["ContentType"] == "application/json"
    assert reply["InvokedProductionVariant"] == "AllTraffic"


def test_it_is_described_and_listed(served, triple):
    description = served.api.describe_endpoint(EndpointName=triple)
    assert description["EndpointConfigName"] == triple and "FailureReason" not in description
    assert description["ProductionVariants"] == [
        {"VariantName": "AllTraffic", "CurrentInstanceCount": 1, "DesiredInstanceCount": 1}
    ]
    named = served.api.list_endpoints(NameContains="TRIPLE-1", StatusEquals="InService")
    assert [endpoint["EndpointName"] for endpoint in named["Endpoints"]] == [triple]
    assert served.api.list_endpoints(StatusEquals="Failed", NameContains=triple)["Endpoints"] == []


def test_a_description_leaves_out_what_was_not_given(served, triple):
    """The SDK 3 reads each structure that is there, and its members are required."""
    model = served.api.describe_model(ModelName=triple)
    config = served.api.describe_endpoint_config(EndpointConfigName=triple)
    for result in (model, config):
        assert not [name for name, value in result.items() if value in ({}, [], None)]
    assert model["PrimaryContainer"]["ModelDataUrl"] and config["ProductionVariants"]
    assert served.api.list_notebook_instances()["NotebookInstances"] == []


@pytest.mark.parametrize("count", [320, pytest.param(32_000, marks=pytest.mark.soak)])
@pytest.mark.timeout(900)
def test_many_at_once_get_each_its_own_answer_and_nothing_grows(served, triple, count):
    runtime = client_of(served.emulator, "sagemaker-runtime")

    def ask(number: int) -> list:
        sent = {"EndpointName": triple, "ContentType": "application/json", "Body": f"[{number}]"}
        return json.loads(runtime.invoke_endpoint(**sent)["Body"].read())

    def ask_all(count: int) -> list:
        with ThreadPoolExecutor(32) as pool:
            return list(pool.map(ask, range(count)))

    ask_all(64)  # caches fill
    process = psutil.Process(served.emulator.running.pid)
    memory, files = process.memory_info().rss, process.num_fds()
    assert ask_all(count) == [[3 * number] for number in range(count)]
    assert process.memory_info().rss - memory < 50 << 20
    until(lambda: process.num_fds() <= files + 64)


def test_a_handler_that_raises(served, triple):
    with pytest.raises(ClientError) as refused:
        served.raw(triple, "no json")
    error_fields = refused.value.response
    assert error_fields["Error"]["Code"] == "ModelError"
    assert error_fields["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert error_fields["OriginalStatusCode"] == 500
    assert error_fields["OriginalMessage"].startswith("Expecting value: line 1 column 1")
    message = error_fields["Error"]["Message"]
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
    two = [item | {"InitialInstanceCount": 1} for item in two]
    served.api.create_endpoint_config(EndpointConfigName="two-1", ProductionVariants=two)
    with pytest.raises(ClientError, match="does not offer several ProductionVariants"):
        served.api.create_endpoint(EndpointName="refused-1", EndpointConfigName="two-1")
    with pytest.raises(ClientError, match="does not offer UpdateEndpoint"):
        served.api.update_endpoint(EndpointName=triple, EndpointConfigName="two-1")
    body = {"ModelName": "refused-1", "PrimaryContainer": {"Environment": {"1x": "y"}}}
    with pytest.raises(ClientError, match="regular expression pattern"):
        served.api.create_model(**body, ExecutionRoleArn="arn:aws:iam::" + "0" * 12 + ":role/any")
    assert served.api.list_endpoints(NameContains="refused-1")["Endpoints"] == []


def worker_of(name: str) -> tuple[int, str]:
    """Port and key of an endpoint's worker: the key can be read by the worker's user alone."""
    mark = f"endpoint/{name}"
    for process in psutil.process_iter():
        try:
            if mark in str(env := process.environ()) and (result := process.net_connections()):
                return result[0].laddr.port, env.get(KEY, "")
        except psutil.Error:
            continue
    raise AssertionError(f"{name} has no worker")


def post(port: int, path: str, method: str = "POST", **headers: str) -> int:
    """The status of a request that a worker gets from elsewhere than its endpoint."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    with contextlib.closing(connection):
        connection.request(method, path, None if method == "GET" else b"[1]", sent)
        return connection.getresponse().status


WEB_PAGE = {"Content_Type": "text/plain", "Origin": "http://evil.test"}  # no-cors


@pytest.fixture(scope="module")
def loud(served):
    """An endpoint whose model says when it is asked; its name."""
    files = script(TRIPLE.replace("return json.l", "print('ASKED'); return json.l"))
    assert served.deploy(served.model("loud-1", files))["EndpointStatus"] == "InService"
    return "loud-1"


def test_a_worker_answers_nobody_but_its_endpoint(served, loud):
    port, key = worker_of(loud)
    for path in ("/invocations", "//invocations", f"/{key[:-1]}/invocations", "/ping", "/", "x"):
        assert post(port, path) == post(port, path, **WEB_PAGE) == 403, path
        assert post(port, path, "GET") == post(port, path, "PUT") == 403, path
    assert post(port, "/invocations", Content_Length="9" * 12) == 403  # and waits for no body
    assert post(port, f"/{key}/invocations", Content_Length="abc") == 411
    served.raw(loud, "[1]")
    served.until_log(loud, "ASKED")
    assert served.log(loud).count("ASKED") == 1


def test_nothing_is_left_of_a_deleted_endpoint(served):
    began = """
import subprocess
def model_fn(model_dir): return subprocess.Popen(["sleep", "600"], start_new_session=True)
def transform_fn(model, data, content_type, accept): return "[]"
"""
    description = served.deploy(served.model("deleted-1", script(began)))
    assert description["EndpointStatus"] == "InService", description.get("FailureReason")
    assert len(processes_with("endpoint/deleted-1")) == 2
    served.api.delete_endpoint(EndpointName="deleted-1")
    until_gone("endpoint/deleted-1")
    assert not (served.emulator.state / "endpoints" / "deleted-1").exists()
    with pytest.raises(ClientError, match="Could not find endpoint"):
        served.api.describe_endpoint(EndpointName="deleted-1")
    with pytest.raises(ClientError, match="of account"):
        served.ask("deleted-1", [1])
