"""Requests that no AWS client sends get AWS-shaped answers: no HTML, no stack trace."""

import json

import pytest
from botocore.exceptions import ClientError
from raw_http import call, error, head, raw

from local_sagemaker.pytest_plugin import BUCKET

CREATE = "SageMaker.CreateTrainingJob"


UNKNOWN = ("SageMaker.NoSuchCall", "SageMaker.", "SageMakr.CreateTrainingJob", "x")
NOT_JSON = (b"{", b"not json", b"\xff\xfe", b"[" * 20000)


@pytest.mark.parametrize(
    ("target", "body", "expected", "words"),
    [
        *((target, {}, "UnknownOperationException", target) for target in UNKNOWN),
        *((CREATE, body, "SerializationException", "is not JSON") for body in NOT_JSON),
        (CREATE, b"[]", "SerializationException", "is not a JSON object"),
        (CREATE, b"5", "SerializationException", "is not a JSON object"),
        (CREATE, b"", "ValidationException", "Value null at 'trainingJobName'"),
    ],
)
def test_what_is_no_request_of_an_operation(emulator, target, body, expected, words):
    status, code, message = error(emulator, target, body)
    assert (status, code) == (400, expected)
    assert words in message


def test_no_body_is_an_empty_request(emulator):
    assert call(emulator, "SageMaker.ListTrainingJobs")[0] == 200


def test_an_operation_that_moto_lacks(emulator):
    """It must not look like a passing fault: clients would try it again for seconds."""
    members = {"PolicyInputList": ["{}"], "ActionNames": ["a:b"]}
    with pytest.raises(ClientError, match="does not offer") as caught:
        emulator.client("iam").simulate_custom_policy(**members)
    assert caught.value.response["Error"]["Code"] == "UnknownOperationException"
    assert caught.value.response["ResponseMetadata"]["RetryAttempts"] == 0


def test_a_path_that_moto_lacks(emulator):
    """AWS Batch's, which the SDK 3 queues training jobs with: moto says 404 and nothing else."""
    with pytest.raises(ClientError, match="The emulator does not offer this: POST /v1/create"):
        emulator.client("batch").create_service_environment(
            serviceEnvironmentName="queue",
            serviceEnvironmentType="SAGEMAKER_TRAINING",
            capacityLimits=[{"maxCapacity": 1, "capacityUnit": "NUM_INSTANCES"}],
        )


def post(emulator, target: str = CREATE) -> str:
    return "POST / HTTP/1.1\r\n" + head(emulator.env, X_Amz_Target=target)


TOO_LARGE = (413, '"__type": "RequestEntityTooLarge"')
NO_NUMBER = (400, "Content-Length is not a number")


@pytest.mark.parametrize(
    ("length", "status", "words"),
    [
        ("9" * 15, *TOO_LARGE),
        ("7000000", *TOO_LARGE),
        *((length, *NO_NUMBER) for length in ("-1", "many", "0x10")),
    ],
)
def test_a_length_is_looked_at_before_the_body_comes(emulator, length, status, words):
    answer = raw(emulator, f"{post(emulator)}Content-Length: {length}")
    assert answer.startswith(f"HTTP/1.1 {status} ")
    assert words in answer


def test_a_body_in_chunks(emulator):
    body = json.dumps({"TrainingJobName": "unheard-of"}).encode()
    lines = post(emulator, CREATE.replace("Create", "Describe")) + "Transfer-Encoding: chunked"
    answer = raw(emulator, lines, b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    assert "Requested resource not found" in answer


def test_an_upload_that_breaks_off_leaves_no_object(emulator):
    lines = f"PUT /{BUCKET}/half HTTP/1.1\nContent-Length: 1000\n"
    lines += head(emulator.env, "s3", method="PUT", path=f"/{BUCKET}/half")
    answer = raw(emulator, lines, b"x" * 10)
    assert answer.startswith("HTTP/1.1 400 ")
    assert "<Code>IncompleteBody</Code>" in answer
    with pytest.raises(ClientError, match="404"):
        emulator.client("s3").head_object(Bucket=BUCKET, Key="half")
