"""A TensorFlow run that was killed resumes from its checkpoint and ends as if it had not been."""

import json
import random
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from cut_off_harness import cut_off, last_step, records
from script_harness import (
    BIN,
    HERE,
    LAUNCH_PS,
    SCRIPTS,
    check_equals,
    mpirun,
    script_env,
    weights,
)

EVERY = 10  # steps from one checkpoint to the next
STEPS = 240  # 10 epochs and a part of one
SECONDS = 600  # processes that import TensorFlow, on a machine that may be busy
# One thread a rank: two machines with other numbers of cores add in the same order.
LENGTH = ["--max-steps", str(STEPS), "--log-every", "1", "--threads-per-rank", "1"]


def task(kind: str, index: int) -> Callable[[dict], bool]:
    """Picks the process of a task of TF_CONFIG."""

    def picks(env: dict) -> bool:
        return json.loads(env.get("TF_CONFIG", "{}")).get("task") == {"type": kind, "index": index}

    return picks


@dataclass(frozen=True)
class Launcher:
    """How a script is started, and which of its processes is killed."""

    command: list
    victim: Callable[[dict], bool]


HOROVOD = [*mpirun(2), SCRIPTS / "train_tf_horovod.py"]
WORKERS = [sys.executable, SCRIPTS / "common" / "launch_workers.py", "--workers", "2", "--"]
SERVERS = [*LAUNCH_PS, "--workers", "1", "--ps", "1", "--"]
LAUNCHERS = {
    "horovod": Launcher(HOROVOD, lambda env: env.get("OMPI_COMM_WORLD_RANK") == "1"),
    "multiworker": Launcher(WORKERS, task("worker", 0)),
    "parameter_server": Launcher(SERVERS, task("ps", 0)),
}


def needs_mpirun() -> None:
    """Skip the calling test where Horovod is not installed."""
    pytest.importorskip("horovod", reason="Horovod is not installed (see requirements/)")
    if not (BIN / "mpirun").exists():
        pytest.skip(f"no mpirun beside {sys.executable}")


def kept_in(folder) -> list:
    return ["--checkpoint-dir", folder, "--checkpoint-every", EVERY]


def killed(one: Launcher, digits, tmp_path) -> tuple[Path, int]:
    """Kill the victim at a random step; the folder of the checkpoints, and the last step done.

    Tried again where the run is over first: nothing holds it while this process has to wait.
    """
    env = script_env(digits, tmp_path / "model", TMPDIR=str(tmp_path))
    for attempt in range(3):
        log, kept = tmp_path / f"killed-{attempt}.log", tmp_path / f"kept-{attempt}"
        step = random.randrange(EVERY + 5, STEPS // 4)
        done = cut_off([*one.command, *LENGTH, *kept_in(kept)], env, log, one.victim, step)
        if done is not None and last_step(log) < STEPS:
            assert done.code != 0
            return kept, last_step(log)
    raise AssertionError(f"three runs of {STEPS} steps were over before they could be killed")


def killed_and_resumed(run, digits, tmp_path, launcher: str):
    """Kill the launcher's victim at a random step, resume to the end; the resumed run.

    At most one interval of steps was done twice.
    """
    one = LAUNCHERS[launcher]
    kept, reached = killed(one, digits, tmp_path)
    command = [*one.command, *LENGTH, *kept_in(kept), "--dump-weights", tmp_path / "again"]
    again = run(*command, timeout=SECONDS)
    (resumed,) = [one for one in records(again.stdout) if one["event"] == "resumed"]
    assert reached - resumed["step"] <= EVERY, f"killed after step {reached}: {resumed}"
    assert min(one["step"] for one in again.events("step")) == resumed["step"] + 1
    assert max(one["step"] for one in again.events("step")) == STEPS
    return again


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "launcher",
    [
        pytest.param("horovod", marks=pytest.mark.horovod),
        pytest.param("multiworker", marks=pytest.mark.soak),
    ],
)
def test_ends_with_the_weights_of_a_run_that_was_not_killed(run, digits, tmp_path, launcher):
    """To the last bit. One process alone is no measure: rounding has grown after 240 steps."""
    if launcher == "horovod":
        needs_mpirun()
    whole = [*LAUNCHERS[launcher].command, *LENGTH, "--dump-weights", tmp_path / "whole"]
    run(*whole, timeout=SECONDS)
    killed_and_resumed(run, digits, tmp_path, launcher)
    check_equals(weights(tmp_path / "whole"), tmp_path / "again", 2, 0.0)


@pytest.mark.slow
def test_checkpoints_are_on_the_coordinators_disk_not_on_the_parameter_servers(tmp_path):
    """Each process has a folder of its own here, as instances have disks of their own."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        ports = [str(found.getsockname()[1]) for found in (one, b)]
    program, processes = [sys.executable, HERE / "checkpoint_on_servers.py", *ports], {}
    for task in ("ps", "worker", "chief"):
        (tmp_path / task).mkdir()
        processes[task] = subprocess.Popen(
            [*program, task], cwd=tmp_path / task, stdout=subprocess.PIPE, text=True
        )
    try:
        said, _ = processes["chief"].communicate(timeout=240)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    assert processes["chief"].returncode == 0
    assert "/job:ps/" in said, "the model must be on the parameter server"
    assert [json.loads(line)["step"] for line in said.splitlines() if "resumed" in line] == [10]
    assert list((tmp_path / "chief/kept").iterdir()) and not list((tmp_path / "ps").iterdir())


@pytest.mark.soak  # in make test, test_parameter_server.py kills each process
@pytest.mark.timeout(900)
def test_a_parameter_server_that_is_killed_costs_one_interval(run, digits, tmp_path):
    again = killed_and_resumed(run, digits, tmp_path, "parameter_server")
    assert again.accuracy >= 0.9
