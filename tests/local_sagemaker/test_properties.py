"""What holds for every request, searched for by Hypothesis, which shrinks what breaks it."""

from __future__ import annotations

import json
import string
import sys
import uuid
from pathlib import Path

import pytest
from fuzz_harness import OPERATIONS, answer_to, complaint
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raw_http import call, head

from endpoint_harness import request

BUCKET = "searched"
SCRIPTS = Path(__file__).parent / "scripts"
HARD = [" a ", "", '"b"', "é 漢", "$HOME `id`", "\\n", "--x=1", "{'c': 1}"]  # for a shell, or JSON
FEW, MANY = 40, 120
COMMON = {"deadline": None, "database": None}
AGREED = (400, 403, 404, 405, 409, 411, 413, 415, 501)  # errors of the caller, as AWS counts them

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)
# S3: a key is Unicode text, of at most 1024 bytes. XML 1.0, in which it is listed, has no
# control characters: AWS's own documentation advises against them.
keys = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co")), min_size=1, max_size=60)
lines = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))  # a value is one line of text
names = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=30)
variables = st.from_regex(r"[A-Z][A-Z0-9_]{0,20}_ECHO", fullmatch=True)


@pytest.fixture(scope="module")
def searched(endpoint):
    """The usual endpoint, with a bucket of this module's own."""
    endpoint.client("s3").create_bucket(Bucket=BUCKET)
    return endpoint


@settings(max_examples=MANY, **COMMON)
@given(name=st.sampled_from(OPERATIONS), body=json_values)
def test_any_json_is_answered_in_awss_form(searched, name, body):
    status, kind, text = call(searched, f"SageMaker.{name}", body)
    assert status == 200 or status in AGREED, text
    assert kind == "application/x-amz-json-1.1"
    told = json.loads(text)
    assert status == 200 or (told["__type"] and told["message"])


@settings(max_examples=MANY, **COMMON)
@given(
    line=st.text(string.printable, max_size=60),
    headers=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4),
    body=st.binary(max_size=200),
)
def test_any_head_is_answered_or_refused(searched, line, headers, body):
    said = [f"{line} / HTTP/1.1", head(searched.env, method=line).rstrip()]
    said += [f"{name}: {value}" for name, value in headers]
    sent = "\r\n".join(said).encode("utf-8", "replace") + b"\r\n\r\n" + body
    assert complaint(sent, answer_to(searched.running.port, sent)) is None
    assert call(searched, "SageMaker.ListTrainingJobs", {})[0] == 200


@settings(max_examples=FEW, **COMMON)
@given(key=keys, content=st.binary(max_size=3000))
def test_what_is_put_into_s3_comes_back(searched, key, content):
    s3 = searched.client("s3")
    s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    try:
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == content
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=key)["Contents"]
        assert (key, len(content)) in [(one["Key"], one["Size"]) for one in listed]
    finally:
        s3.delete_object(Bucket=BUCKET, Key=key)


@pytest.mark.namespaces  # else /opt/ml is not at the path that the script reads
@settings(max_examples=6, **COMMON)
@given(
    hyperparameters=st.dictionaries(names, st.text(lines, max_size=80), max_size=20),
    environment=st.dictionaries(variables, st.text(lines, max_size=40), max_size=8),
)
@example(
    dict(zip("abcdefgh", HARD, strict=True)), {f"V{n}_ECHO": one for n, one in enumerate(HARD)}
)
def test_what_a_job_is_given_reaches_its_script(searched, hyperparameters, environment):
    body = request(f"echo-{uuid.uuid4().hex[:12]}", Environment=environment)
    body["HyperParameters"] = hyperparameters
    body["OutputDataConfig"] = {"S3OutputPath": f"s3://{BUCKET}/out"}
    body["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": [sys.executable],
        "ContainerArguments": [str(SCRIPTS / "echo.py"), *environment],
    }
    searched.client("sagemaker").create_training_job(**body)
    job = searched.wait(body["TrainingJobName"])
    assert job.status == "Completed", job.description.get("FailureReason")
    (said,) = job.lines("ECHO ")
    assert json.loads(said) == {
        "hyperparameters": hyperparameters,
        "environment": list(environment.values()),
    }
    assert job.description.get("HyperParameters", {}) == hyperparameters
    assert job.description.get("Environment", {}) == environment
