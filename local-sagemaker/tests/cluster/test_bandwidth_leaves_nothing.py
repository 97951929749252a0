"""However a job on narrow links ends, no namespace, bridge, cable or discipline is left."""

import contextlib
import os
import signal
import uuid
from collections.abc import Iterator

import psutil
import pytest
from bandwidth_helpers import host_network, links_lines, started, supervised
from emulator_harness import SCRIPTS, until, until_gone

SECONDS = 8  # long enough to be seen on a busy machine
STUBBORN = (str(SCRIPTS / "fail.py"), "--mode", "stubborn")

pytestmark = pytest.mark.shaping


@contextlib.contextmanager
def running(emulator, *command: str) -> Iterator[str]:
    """A job on narrow links, whose two instances run; its name, which no other process has.

    Afterwards no process of it is left, nor one that holds its namespaces, which go with the last
    one; and the host's network is as before.
    """
    name, before = f"leaves-nothing-{uuid.uuid4().hex[:12]}", host_network()
    started(emulator, name, "100mbit", list(command))
    known = until(lambda: supervised(name), 120)
    yield name
    until_gone(name)
    _, alive = psutil.wait_procs(known, 30)
    assert not alive
    assert host_network() == before


def test_after_a_script_that_fails(emulator):
    """One that ends well leaves nothing either: test_many_jobs.py."""
    script = f"import time; time.sleep({SECONDS}); raise ValueError('too bad')"
    with running(emulator, "-c", script) as name:
        job = emulator.wait(name)
        assert job.status == "Failed"
        assert links_lines(job) == ["links: 100 Mbit/s between instances, asked for by the job"]


def test_after_stop_training_job(emulator):
    with running(emulator, *STUBBORN) as name:
        emulator.client("sagemaker").stop_training_job(TrainingJobName=name)
        assert emulator.wait(name).status == "Stopped"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_after_the_emulators_own_end(mortal, number):
    with running(mortal, *STUBBORN):
        os.kill(mortal.running.pid, number)
