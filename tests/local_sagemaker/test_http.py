"""Requests that no AWS client sends get AWS-shaped answers: no HTML, no stack trace."""

from __future__ import annotations

import json

import pytest
from botocore.exceptions import ClientError
from raw_http import call, error, head, raw

from endpoint_harness import BUCKET

CREATE = "SageMaker.CreateTrainingJob"


@pytest.mark.parametrize(
    "target", ["SageMaker.NoSuchCall", "SageMaker.", "SageMakr.CreateTrainingJob", "x"]
)
def test_an_unknown_operation(endpoint, target):
    status, code, message = error(endpoint, target, {})
    assert (status, code) == (400, "UnknownOperationException")
    assert target in message


def test_an_operation_that_moto_lacks(endpoint):
    """It must not look like a passing fault: clients would try it again for seconds."""
    status, code, _ = error(endpoint, "SageMaker.CreateLabelingJob", {})
    assert (status, code) == (400, "UnknownOperationException")
    with pytest.raises(ClientError, match="does not offer") as caught:
        endpoint.client("sagemaker").list_labeling_jobs()
    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0


def test_an_operation_of_a_service_in_xml_that_moto_lacks(endpoint):
    with pytest.raises(ClientError, match="does not offer") as caught:
        endpoint.client("iam").simulate_custom_policy(PolicyInputList=["{}"], ActionNames=["a:b"])
    assert caught.value.response["Error"]["Code"] == "UnknownOperationException"


def test_an_unsigned_call(endpoint):
    status, code, _ = error(endpoint, CREATE, {}, service="")
    assert (status, code) == (403, "MissingAuthenticationTokenException")


@pytest.mark.parametrize("body", [b"{", b"not json", b"\xff\xfe", b"[" * 20000])
def test_a_body_that_is_not_json(endpoint, body):
    status, code, message = error(endpoint, CREATE, body)
    assert (status, code) == (400, "SerializationException")
    assert "not JSON" in message


@pytest.mark.parametrize("body", [[], "text", 5, None])
def test_a_body_that_is_no_object(endpoint, body):
    status, code, message = error(endpoint, CREATE, body)
    assert (status, code) == (400, "SerializationException")
    assert message == "The body is not a JSON object."


def test_an_empty_body_is_an_empty_request(endpoint):
    status, code, message = error(endpoint, CREATE)
    assert (status, code) == (400, "ValidationException")
    assert "Value null at 'trainingJobName'" in message
    assert call(endpoint, "SageMaker.ListTrainingJobs")[0] == 200


def post(endpoint, target: str = CREATE) -> str:
    return "POST / HTTP/1.1\r\n" + head(endpoint.env, X_Amz_Target=target)


@pytest.mark.parametrize("length", ["9" * 15, "7000000"])
def test_a_body_too_long_is_refused_before_it_comes(endpoint, length):
    answer = raw(endpoint, f"{post(endpoint)}Content-Length: {length}", end=True)
    assert answer.startswith("HTTP/1.1 413 ")
    assert '"__type": "RequestEntityTooLarge"' in answer


@pytest.mark.parametrize("length", ["-1", "many", "0x10"])
def test_a_length_that_is_none(endpoint, length):
    answer = raw(endpoint, f"{post(endpoint)}Content-Length: {length}", end=True)
    assert answer.startswith("HTTP/1.1 400 ")
    assert "Content-Length is not a number" in answer


def test_a_body_in_chunks(endpoint):
    body = json.dumps({"TrainingJobName": "unheard-of"}).encode()
    lines = post(endpoint, CREATE.replace("Create", "Describe")) + "Transfer-Encoding: chunked"
    answer = raw(endpoint, lines, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert "Requested resource not found" in answer


def test_an_upload_that_breaks_off_leaves_no_object(endpoint):
    lines = f"PUT /{BUCKET}/half HTTP/1.1\nContent-Length: 1000\n"
    lines += head(endpoint.env, "s3", method="PUT", path=f"/{BUCKET}/half")
    answer = raw(endpoint, lines, b"x" * 10, end=True)
    assert answer.startswith("HTTP/1.1 400 ")
    assert "<Code>IncompleteBody</Code>" in answer
    with pytest.raises(ClientError, match="404"):
        endpoint.client("s3").head_object(Bucket=BUCKET, Key="half")


def test_a_web_page_may_not_call(endpoint):
    """A page in the learner's browser could otherwise run programs on this machine."""
    status, code, _ = error(endpoint, "SageMaker.ListTrainingJobs", {}, Origin="http://evil.test")
    assert (status, code) == (403, "AccessDenied")
    lines = "OPTIONS / HTTP/1.1\nHost: 127.0.0.1\nOrigin: http://evil.test"
    lines += "\nAccess-Control-Request-Method: POST"
    assert "access-control-allow" not in raw(endpoint, lines, end=True).lower()
