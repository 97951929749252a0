"""What holds for every request, searched for by Hypothesis, which shrinks what breaks it."""

from __future__ import annotations

import json
import socket
import string
import sys
import uuid
from pathlib import Path

import psutil
import pytest
from botocore.model import ListShape, MapShape, Shape, StructureShape
from emulator_harness import request
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raw_http import answer_to, call, complaint, head

from local_sagemaker.protocol.validation import operation
from local_sagemaker.pytest_plugin import BUCKET, Emulator

SCRIPTS = Path(__file__).parent / "scripts"
OPERATIONS = (
    *("CreateTrainingJob", "DescribeTrainingJob", "ListTrainingJobs", "StopTrainingJob"),
    *("DeleteTrainingJob", "AddTags", "ListTags", "CreateModel", "CreateEndpoint"),
    "CreateTransformJob",
)
HARD = [" a ", "", '"b"', "é 漢", "$HOME `id`", "\\n", "--x=1", "{'c': 1}"]  # for a shell, or JSON
ODD_TEXTS = ("", "\0", "\ud800", "é" * 70, "a" * 70_000, "../..", "s3://", "s3://a/../b", "-" * 63)
ODD_NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**63, 10**30, -(10**30), 1e308, 0.5, float("nan"))
SLOW_CLIENTS = 200
FEW, MANY, SOAK = 40, 120, 3000
COMMON = {"deadline": None, "database": None}
AGREED = (400, 403, 404, 405, 409, 411, 413, 415, 501)  # errors of the caller, as AWS counts them

texts = st.sampled_from(ODD_TEXTS) | st.text(string.printable, max_size=40)
numbers = st.sampled_from(ODD_NUMBERS) | st.integers(0, 100)
any_json = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
# S3: a key is Unicode text, of at most 1024 bytes. XML 1.0, in which it is listed, has no
# control characters: AWS's own documentation advises against them.
keys = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co")), min_size=1, max_size=60)
lines = st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"))  # a value is one line of text
names = st.text(string.ascii_letters + string.digits + "_-.", min_size=1, max_size=30)
variables = st.from_regex(r"[A-Z][A-Z0-9_]{0,20}_ECHO", fullmatch=True)


def nearly(shape: Shape, depth: int = 0) -> st.SearchStrategy:
    """Values of a shape: mostly of its type, often at or over its limits."""
    if depth > 6:
        return any_json
    if isinstance(shape, StructureShape):
        members = {name: nearly(one, depth + 1) for name, one in shape.members.items()}
        needed = {name: members.pop(name) for name in shape.required_members}
        right = st.fixed_dictionaries(needed, optional=members)
    elif isinstance(shape, ListShape):
        right = st.lists(nearly(shape.member, depth + 1), max_size=3)
    elif isinstance(shape, MapShape):
        right = st.dictionaries(texts, nearly(shape.value, depth + 1), max_size=2)
    elif shape.type_name == "boolean":
        right = st.booleans()
    elif shape.type_name == "string":
        right = st.sampled_from([*shape.enum, "s3://lessons-data/data", "a"]) | texts
    else:
        right = numbers
    return st.one_of(right, right, right, right, any_json)


@st.composite
def calls(draw) -> tuple[str, object]:
    """(operation, a body): of any form, nearly right, or right but for one member."""
    name = draw(st.sampled_from(OPERATIONS))
    shape = operation(name).input_shape
    if name == "CreateTrainingJob" and draw(st.booleans()):
        body = request(f"searched-{draw(st.integers(0, 10**9))}")
        body["StoppingCondition"]["MaxRuntimeInSeconds"] = 1
        member = draw(st.sampled_from(list(shape.members)))
        return name, body | {member: draw(nearly(shape.members[member]))}
    return name, draw(st.one_of(any_json, nearly(shape)))


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """An endpoint of this module's own: what is sent to it may start, stop and delete."""
    one = Emulator(tmp_path_factory.mktemp("searched") / "state", ["--grace", "1"])
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("precious", "kept")
    yield one
    sound(one)
    one.down()


def sound(endpoint) -> None:
    """It is the same process, it answers, and what it kept is there."""
    assert psutil.pid_exists(endpoint.running.pid)
    assert call(endpoint, "SageMaker.ListTrainingJobs", {})[0] == 200
    assert endpoint.get(f"s3://{BUCKET}/precious") == b"kept"


@given(sent=calls())
def search_calls(searched, sent):
    name, body = sent
    status, kind, text = call(searched, f"SageMaker.{name}", body)
    assert status == 200 or status in AGREED, text
    assert kind == "application/x-amz-json-1.1"
    told = json.loads(text)
    assert status == 200 or (told["__type"] and told["message"])


@given(
    line=st.text(string.printable, max_size=60) | st.sampled_from(["GET", "PUT", "TRACE", "BREW"]),
    path=st.text("/%.?&=+0A:\\é~lessons-data", max_size=60),
    headers=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4),
    body=st.binary(max_size=200),
)
def search_heads(searched, line, path, headers, body):
    said = [f"{line} /{path} HTTP/1.1", head(searched.env, "s3", method=line, path=f"/{path}")]
    said += [f"{name}: {value}" for name, value in headers]
    sent = "\r\n".join(one.rstrip() for one in said).encode("utf-8", "replace")
    sent += b"\r\n\r\n" + body
    assert complaint(sent, answer_to(searched.running.port, sent)) is None


@pytest.mark.parametrize("search", [search_calls, search_heads], ids=["calls", "heads"])
def test_whatever_is_sent_is_answered_in_awss_form(searched, search):
    settings(max_examples=MANY, **COMMON)(search)(searched)
    sound(searched)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("search", [search_calls, search_heads], ids=["calls", "heads"])
def test_thousands_of_them(searched, search):
    settings(max_examples=SOAK, **COMMON)(search)(searched)
    sound(searched)


def test_what_is_hardly_http(searched):
    post = f"POST / HTTP/1.1\r\n{head(searched.env, X_Amz_Target='SageMaker.ListTrainingJobs')}"
    chunked = f"{post}Transfer-Encoding: chunked\r\n\r\n".encode()
    sizes = [b"-5", b"zz", b"", b"ffffffffffffffff", b"5", b"0"]
    for sent in (
        b"\xff\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET http://[ HTTP/1.1\r\nHost: [\r\n\r\n",
        b"GET //[::1/x HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n: \r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
        *(post[:length].encode() for length in range(0, len(post), 97)),
        *(chunked + size + b"\r\n{}   " + end for size in sizes for end in (b"", b"\r\n0\r\n\r\n")),
    ):
        assert complaint(sent, answer_to(searched.running.port, sent)) is None, sent[:200]
    sound(searched)


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
@settings(max_examples=2, **COMMON)
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


def test_slow_clients_keep_nobody_waiting(searched):
    """Each sends a byte of its head now and then, or stops in the middle of its body."""
    held = []
    start = f"POST / HTTP/1.1\r\n{head(searched.env)}"
    try:
        for number in range(SLOW_CLIENTS):
            one = socket.create_connection(("127.0.0.1", searched.running.port), timeout=60)
            half = "X-Slow: " if number % 2 else "Content-Length: 1000\r\n\r\n{"
            one.sendall((start + half).encode())
            held.append(one)
        for _ in range(3):
            for one in held[1::2]:
                one.sendall(b"a")
            sound(searched)
    finally:
        for one in held:
            one.close()
    sound(searched)


def test_a_body_in_chunks_has_a_limit(searched):
    """A client that sends without end is told so, and holds no memory meanwhile."""
    before = psutil.Process(searched.running.pid).memory_info().rss
    lines = head(searched.env, X_Amz_Target="SageMaker.ListTrainingJobs")
    sent = f"POST / HTTP/1.1\r\n{lines}Transfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    received = answer_to(searched.running.port, sent + chunk * 64)
    assert b"RequestEntityTooLarge" in received or received == b""
    assert psutil.Process(searched.running.pid).memory_info().rss - before < 48 << 20
    sound(searched)
