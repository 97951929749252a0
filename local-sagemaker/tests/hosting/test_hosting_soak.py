"""32 clients for 60 s: every answer is right, and nothing grows. Run by `make soak`."""

from __future__ import annotations

import statistics
import threading
import time

import psutil
import pytest
from hosting_helpers import TRIPLE, no_retries, script

CLIENTS, SECONDS, DISTINCT = 32, 60, 8
GROWN = 50 * 1024 * 1024  # bytes


@pytest.mark.soak
def test_32_clients_for_60_seconds(served):
    description = served.deploy(served.model("soak-1", script(TRIPLE)))
    assert description["EndpointStatus"] == "InService", description.get("FailureReason")
    runtime = no_retries(served)
    bodies = [b"[%d]" % number for number in range(DISTINCT)]
    right = [_ask(runtime, body) for body in bodies]
    assert len(set(right)) == DISTINCT  # so that a mix-up would show
    _clients(runtime, bodies, right, seconds=5)  # caches fill
    process = psutil.Process(served.emulator.running.pid)
    before, open_before = process.memory_info().rss, process.num_fds()
    took, wrong = _clients(runtime, bodies, right, SECONDS)
    grown = process.memory_info().rss - before
    took.sort()
    print(
        f"{len(took)} requests, {len(took) / SECONDS:.0f} a second; median "
        f"{1000 * statistics.median(took):.1f} ms, 99th percentile "
        f"{1000 * took[len(took) * 99 // 100]:.1f} ms; memory grew by {grown / 2**20:.1f} MB"
    )
    assert wrong == []
    assert len(took) >= 10 * CLIENTS
    assert grown < GROWN
    deadline = time.monotonic() + 60
    while process.num_fds() > open_before + 2 * CLIENTS:
        assert time.monotonic() < deadline, process.num_fds() - open_before
        time.sleep(0.5)
    served.api.delete_endpoint(EndpointName="soak-1")


def _clients(runtime, bodies: list, right: list, seconds: float) -> tuple[list[float], list]:
    """(seconds of each request, what went wrong) of CLIENTS threads."""
    took: list[float] = []
    wrong: list = []
    end = time.monotonic() + seconds

    def client(number: int) -> None:
        while time.monotonic() < end:
            number = (number + 1) % DISTINCT
            begun = time.perf_counter()
            try:
                answer = _ask(runtime, bodies[number])
            except Exception as error:
                wrong.append(error)
                continue
            took.append(time.perf_counter() - begun)
            if answer != right[number]:
                wrong.append((number, answer))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took, wrong


def _ask(runtime, body: bytes) -> bytes:
    reply = runtime.invoke_endpoint(
        EndpointName="soak-1", ContentType="application/json", Body=body
    )
    return reply["Body"].read()
