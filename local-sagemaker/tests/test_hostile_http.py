"""Whatever is sent, the answer has AWS's form, and nobody else waits."""

import string

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raw_http import answer_to, call, complaint, head

from local_sagemaker.pytest_plugin import BUCKET, Emulator

# S3: a key is Unicode text, of at most 1024 bytes. XML 1.0, in which it is listed, has no
# control characters: AWS's own documentation advises against them.
keys = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Co")), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def emulator(tmp_path_factory):
    """An emulator of this module's own."""
    emulator = Emulator(tmp_path_factory.mktemp("hostile") / "state", ["--grace", "1"])
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    emulator.put("precious", "kept")
    yield emulator
    check_sound(emulator)
    emulator.down()


def check_sound(emulator) -> None:
    """It is the same process, it answers, and what it stored is there."""
    assert psutil.pid_exists(emulator.running.pid)
    assert call(emulator, "SageMaker.ListTrainingJobs", {})[0] == 200
    assert emulator.get(f"s3://{BUCKET}/precious") == b"kept"


@pytest.mark.parametrize("examples", [120, pytest.param(3000, marks=pytest.mark.soak)])
@pytest.mark.timeout(3600)
def test_random_requests(emulator, examples):
    @settings(max_examples=examples, deadline=None, database=None)
    @given(
        method=st.text(string.printable, max_size=60) | st.sampled_from(["GET", "PUT", "TRACE"]),
        path=st.text("/%.?&=+0A:\\é~lessons-data", max_size=60),
        headers=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=4),
        body=st.binary(max_size=200),
    )
    def search(method, path, headers, body):
        lines = [f"{method} /{path} HTTP/1.1"]
        lines += [head(emulator.env, "s3", method=method, path=f"/{path}")]
        lines += [f"{name}: {value}" for name, value in headers]
        request = "\r\n".join(line.rstrip() for line in lines).encode("utf-8", "replace")
        request += b"\r\n\r\n" + body
        assert complaint(request, answer_to(emulator.running.port, request)) is None

    search()
    check_sound(emulator)


def test_what_is_hardly_http(emulator):
    post = f"POST / HTTP/1.1\r\n{head(emulator.env, X_Amz_Target='SageMaker.ListTrainingJobs')}"
    chunked = f"{post}Transfer-Encoding: chunked\r\n\r\n".encode()
    sizes = [b"-5", b"zz", b"", b"ffffffffffffffff", b"5", b"0"]
    for request in (
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
        assert complaint(request, answer_to(emulator.running.port, request)) is None, request[:200]
    check_sound(emulator)


@settings(max_examples=40, deadline=None, database=None)
@given(key=keys, content=st.binary(max_size=3000))
def test_what_is_put_into_s3_comes_back(emulator, key, content):
    s3 = emulator.client("s3")
    s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    try:
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == content
        rows = s3.list_objects_v2(Bucket=BUCKET, Prefix=key)["Contents"]
        assert (key, len(content)) in [(row["Key"], row["Size"]) for row in rows]
    finally:
        s3.delete_object(Bucket=BUCKET, Key=key)


def test_a_body_in_chunks_has_a_limit(emulator):
    """A client that sends without end is told so, and holds no memory meanwhile."""
    process = psutil.Process(emulator.running.pid)
    before = process.memory_info().rss
    lines = head(emulator.env, X_Amz_Target="SageMaker.ListTrainingJobs")
    request = f"POST / HTTP/1.1\r\n{lines}Transfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    response = answer_to(emulator.running.port, request + chunk * 64)
    assert b"RequestEntityTooLarge" in response or response == b""
    assert process.memory_info().rss - before < 48 << 20
    check_sound(emulator)
