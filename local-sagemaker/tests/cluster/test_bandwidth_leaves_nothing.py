"""However a job on narrow links ends, no namespace, bridge, cable or discipline is left."""

from __future__ import annotations

import contextlib
import os
import signal
import time
import uuid
from collections.abc import Iterator

import pytest
from bandwidth_helpers import (
    host_network,
    links_lines,
    namespaces_of,
    started,
    until_namespaces_are_gone,
)
from emulator_harness import SCRIPTS, until_gone

from local_sagemaker.pytest_plugin import BUCKET, Emulator

LINKS = "100mbit"
SECONDS = 8  # long enough to be seen on a busy machine
STUBBORN = (str(SCRIPTS / "fail.py"), "--mode", "stubborn")

pytestmark = pytest.mark.shaping


@pytest.fixture
def mortal(tmp_path, request):
    """An emulator of this test's own."""
    emulator = Emulator(tmp_path / "state")
    request.addfinalizer(emulator.down)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    return emulator


def job_name(start: str) -> str:
    """A name that is found in no process but the job's: `until_gone` looks through all."""
    return f"{start}-{uuid.uuid4().hex[:12]}"


@contextlib.contextmanager
def nothing_is_left() -> Iterator[dict[str, float]]:
    """The host's network is as before, and no process is in a namespace of the job.

    Yields a dictionary, for the namespaces that the job was seen in (see `begun`).
    """
    before, known = host_network(), {}
    yield known
    assert known, "the job was not seen running: this test would prove nothing"
    until_namespaces_are_gone(known)
    assert host_network() == before


def begun(emulator, name: str, *command: str) -> dict[str, float]:
    """Start a job on narrow links; its network namespaces, once its two instances run."""
    started(emulator, name, LINKS, list(command))
    deadline = time.monotonic() + 120
    while len(result := namespaces_of(name)) < 3:
        assert time.monotonic() < deadline, result
        time.sleep(0.05)
    return result


def test_after_a_script_that_fails(emulator):
    """One that ends well leaves nothing either: test_many_jobs.py."""
    with nothing_is_left() as known:
        name = job_name("fails")
        script = f"import time; time.sleep({SECONDS}); raise ValueError('too bad')"
        known |= begun(emulator, name, "-c", script)
        job = emulator.wait(name)
        assert job.status == "Failed"
        assert links_lines(job) == ["links: 100 Mbit/s between instances, asked for by the job"]
        until_gone(name)


def test_after_stop_training_job(emulator):
    with nothing_is_left() as known:
        name = job_name("stopped")
        known |= begun(emulator, name, *STUBBORN)
        emulator.client("sagemaker").stop_training_job(TrainingJobName=name)
        assert emulator.wait(name).status == "Stopped"
        until_gone(name)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_after_the_emulators_own_end(mortal, number):
    with nothing_is_left() as known:
        name = job_name("orphan")
        known |= begun(mortal, name, *STUBBORN)
        os.kill(mortal.running.pid, number)
        until_gone(name)
