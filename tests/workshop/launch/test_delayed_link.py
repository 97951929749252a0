"""mpirun(..., latency=): a link that delays each packet, in a network namespace."""

import subprocess
import sys

import pytest

from workshop.launch import delayed_link
from workshop.launch.mpirun import mpirun

needs_link = pytest.mark.skipif(
    delayed_link.unavailable_reason() is not None, reason=str(delayed_link.unavailable_reason())
)
BACK_AND_FORTH = """
from mpi4py import MPI; import json, time
ranks = MPI.COMM_WORLD
ranks.barrier()
times = []
for _ in range(5):
    began = time.perf_counter(); ranks.allreduce(1); times.append(time.perf_counter() - began)
print(json.dumps({"event": "times", "least": min(times)}))
"""


@needs_link
def test_each_message_takes_at_least_the_latency():
    done = mpirun(2, "python", "-c", BACK_AND_FORTH, show=False, latency=0.02)
    assert done.table("times")["least"].min() >= 0.02


@needs_link
def test_the_status_of_the_command_is_passed_on():
    command = [sys.executable, "-c", "import sys; sys.exit(7)"]
    assert subprocess.run(delayed_link.through(command, 0)).returncode == 7


def test_a_machine_that_cannot_is_told(monkeypatch):
    monkeypatch.setattr(delayed_link, "NAMESPACE", ["no-such-program"])
    delayed_link.unavailable_reason.cache_clear()
    try:
        assert "No delayed link" in delayed_link.unavailable_reason()
    finally:
        delayed_link.unavailable_reason.cache_clear()
