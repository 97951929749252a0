"""Whatever is sent, the endpoint answers in AWS's form, goes on answering, and keeps its state."""

from __future__ import annotations

import os
import socket
import time
import uuid

import psutil
import pytest
from fuzz_harness import Fuzzer, answer_to, complaint
from raw_http import call, head

from endpoint_harness import BUCKET, FINAL, Endpoint

SEED = int(os.environ.get("FUZZ_SEED", "20261121"))
SHORT, SOAK_SECONDS = 250, int(os.environ.get("FUZZ_SECONDS", "600"))
SLOW_CLIENTS = 200


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    """An endpoint of this module's own: what is sent to it may start, stop and delete."""
    one = Endpoint(tmp_path_factory.mktemp("fuzzed") / "state", ["--grace", "1"])
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("precious", "kept")
    yield one
    one.down()


def sound(endpoint) -> None:
    """It is the same process, it answers, and what it kept is there."""
    assert psutil.pid_exists(endpoint.running.pid)
    assert call(endpoint, "SageMaker.ListTrainingJobs", {})[0] == 200
    assert endpoint.get(f"s3://{BUCKET}/precious") == b"kept"


def send(endpoint, seed: int, count: int) -> None:
    for number, raw in enumerate(Fuzzer(seed, endpoint.env).requests(count)):
        received = answer_to(endpoint.running.port, raw)
        why = complaint(raw, received)
        assert why is None, (
            f"FUZZ_SEED={seed}, request {number}: {why}\n{raw[:1500]!r}\n{received[:1500]!r}"
        )


def ended(endpoint, seconds: float) -> None:
    """Every job that a request started comes to its end."""
    deadline = time.monotonic() + seconds
    api = endpoint.client("sagemaker")
    while True:
        pages = api.get_paginator("list_training_jobs").paginate()
        found = {one["TrainingJobStatus"] for p in pages for one in p["TrainingJobSummaries"]}
        if found <= set(FINAL):
            return
        assert time.monotonic() < deadline, found
        time.sleep(0.5)


def test_requests_that_are_wrong_in_every_way(fuzzed):
    send(fuzzed, SEED, SHORT)
    sound(fuzzed)


@pytest.mark.soak
@pytest.mark.timeout(SOAK_SECONDS + 900)
def test_ten_minutes_of_them(fuzzed):
    deadline, seed = time.monotonic() + SOAK_SECONDS, SEED
    while time.monotonic() < deadline:
        seed += 1
        send(fuzzed, seed, 200)
        sound(fuzzed)
    ended(fuzzed, 600)
    print(f"seeds {SEED + 1} to {seed}, 200 requests each")


def test_slow_clients_keep_nobody_waiting(fuzzed):
    """Each sends a byte of its head now and then, or stops in the middle of its body."""
    port, held = fuzzed.running.port, []
    start = f"POST / HTTP/1.1\r\n{head(fuzzed.env)}"
    try:
        for number in range(SLOW_CLIENTS):
            one = socket.create_connection(("127.0.0.1", port), timeout=60)
            half = "X-Slow: " if number % 2 else "Content-Length: 1000\r\n\r\n{"
            one.sendall((start + half).encode())
            held.append(one)
        for _ in range(5):
            for one in held[1::2]:
                one.sendall(b"a")
            sound(fuzzed)
            name = f"unheard-{uuid.uuid4().hex[:8]}"
            told = call(fuzzed, "SageMaker.DescribeTrainingJob", {"TrainingJobName": name})
            assert told[0] == 400 and "not found" in told[2]
    finally:
        for one in held:
            one.close()
    sound(fuzzed)


def test_a_body_in_chunks_has_a_limit(fuzzed):
    """A client that sends without end is told so, and holds no memory meanwhile."""
    before = psutil.Process(fuzzed.running.pid).memory_info().rss
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    with socket.create_connection(("127.0.0.1", fuzzed.running.port), timeout=60) as one:
        received = b""
        lines = head(fuzzed.env, X_Amz_Target="SageMaker.ListTrainingJobs")
        one.sendall(f"POST / HTTP/1.1\r\n{lines}".encode())
        one.sendall(b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(64):
                one.sendall(chunk)
            one.shutdown(socket.SHUT_WR)
            while data := one.recv(65536):
                received += data
        except ConnectionError:
            pass
    assert b"RequestEntityTooLarge" in received or received == b""
    assert psutil.Process(fuzzed.running.pid).memory_info().rss - before < 48 << 20
    sound(fuzzed)
