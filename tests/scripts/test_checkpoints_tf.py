"""A TensorFlow run that was killed goes on from its checkpoint and ends as if it had not been."""

import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from cut_off_harness import cut_off, last_step, records
from script_harness import (
    BIN,
    LAUNCH_PS,
    SCRIPTS,
    check_equals,
    mpirun,
    script_env,
    trained_alone,
)

EVERY = 10  # steps from one checkpoint to the next
STEPS = 120  # 5 epochs and a part of one
SECONDS = 280  # processes that import TensorFlow, on a machine that may be busy
# One thread a rank: two machines with other numbers of cores add in the same order.
LENGTH = ["--max-steps", str(STEPS), "--log-every", "1", "--threads-per-rank", "1"]


# Float32 sums in another order differ by an ulp or so a step. A step left out or done twice, or
# momentum that is lost, differs by 1e-3 and more.
TOLERANCE = 1e-5


def task(kind: str, index: int) -> Callable[[dict], bool]:
    """Picks the process of a task of TF_CONFIG."""

    def picks(env: dict) -> bool:
        return json.loads(env.get("TF_CONFIG", "{}")).get("task") == {"type": kind, "index": index}

    return picks


def mpi_rank(rank: int) -> Callable[[dict], bool]:
    """Picks the process of a rank that mpirun started."""
    return lambda env: env.get("OMPI_COMM_WORLD_RANK") == str(rank)


@dataclass(frozen=True)
class Launcher:
    """How a script is started, and which of its processes is killed."""

    command: list
    victims: dict[str, Callable[[dict], bool]]


LAUNCHERS = {
    "horovod": Launcher(
        [*mpirun(2), SCRIPTS / "train_tf_horovod.py"],
        {"rank 0": mpi_rank(0), "rank 1": mpi_rank(1)},
    ),
    "multiworker": Launcher(
        [sys.executable, SCRIPTS / "common" / "launch_workers.py", "--workers", "2", "--"],
        {"rank 0": task("worker", 0), "rank 1": task("worker", 1)},
    ),
    "parameter_server": Launcher(
        [*LAUNCH_PS, "--workers", "2", "--ps", "1", "--"],
        {
            "coordinator": task("master", 0),
            "worker": task("worker", 1),
            "parameter server": task("ps", 0),
        },
    ),
}


def needs(launcher: str) -> None:
    """Skip the calling test where its launcher is not installed."""
    if launcher == "horovod":
        pytest.importorskip("horovod", reason="Horovod is not installed (see requirements/)")
        if not (BIN / "mpirun").exists():
            pytest.skip(f"no mpirun beside {sys.executable}")


def kept_in(folder) -> list:
    return ["--checkpoint-dir", folder, "--checkpoint-every", EVERY]


def killed_and_gone_on(run, digits, tmp_path, launcher: str, victim: str):
    """Kill `victim` at a random step, go on to the end; the run that went on.

    At most one interval of steps was done twice.
    """
    one, step = LAUNCHERS[launcher], random.randrange(EVERY + 5, STEPS // 2)
    log, kept = tmp_path / "killed.log", tmp_path / "kept"
    env = script_env(digits, tmp_path / "model", TMPDIR=str(tmp_path))
    command = [*one.command, *LENGTH, *kept_in(kept)]
    done = cut_off(command, env, log, one.victims[victim], step)
    assert done.code != 0
    reached = last_step(log)
    again = run(*command, "--dump-weights", tmp_path / "again", timeout=SECONDS)
    (resumed,) = [one for one in records(again.stdout) if one["event"] == "resumed"]
    assert 0 <= reached - resumed["step"] <= EVERY, f"killed after step {reached}: {resumed}"
    assert min(one["step"] for one in again.events("step")) == resumed["step"] + 1
    assert max(one["step"] for one in again.events("step")) == STEPS
    return again


@pytest.fixture(scope="module")
def alone(digits, tmp_path_factory) -> list:
    """The weights of one process that was not killed."""
    return trained_alone("train_tf.py", LENGTH, digits, tmp_path_factory)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("launcher", "victim"),
    [
        pytest.param("horovod", "rank 1", marks=pytest.mark.horovod),
        ("multiworker", "rank 0"),
    ],
)
def test_ends_with_the_weights_of_a_run_that_was_not_killed(
    run, alone, digits, tmp_path, launcher, victim
):
    """Two ranks, killed, against one process: only rounding. (`make soak` compares exactly.)"""
    needs(launcher)
    killed_and_gone_on(run, digits, tmp_path, launcher, victim)
    check_equals(alone, tmp_path / "again", 2, TOLERANCE)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_parameter_server_that_is_killed_costs_one_interval(run, digits, tmp_path):
    again = killed_and_gone_on(run, digits, tmp_path, "parameter_server", "parameter server")
    assert again.accuracy >= 0.9
