"""Jobs of TensorFlow scripts that are killed, ten times for each launcher: none hangs, none
trains anything else than a job that was left alone.

Each job resumes from the checkpoints of the one before, and is killed again; the last may end.
"""

from __future__ import annotations

import json
import random

import pytest
from kill_harness import (
    EVERY,
    Victim,
    Way,
    begin,
    digits_endpoint,
    hashes,
    host,
    kill_at,
    rank,
    records,
    steps,
    train,
)

from endpoint_harness import BUCKET, sdk_session

KILLS = 10
STEPS = KILLS * 5 * EVERY  # each kill is seen some dozens of steps late
pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


def task(kind: str, index: int) -> Victim:
    """The script's process of a task of TF_CONFIG; SageMaker calls the coordinator master."""

    def picks(env: dict[str, str], _: list[str]) -> bool:
        return json.loads(env.get("TF_CONFIG", "{}")).get("task") == {"type": kind, "index": index}

    return Victim(f"{kind} {index}", picks)


def server(name: str) -> Victim:
    """The parameter server beside the script on this instance."""

    def picks(env: dict[str, str], line: list[str]) -> bool:
        here = env.get("LOCAL_SAGEMAKER_HOST") == name
        return here and "local_sagemaker.image.ps_server" in line

    return Victim(f"parameter server of {name}", picks)


def way(script: str, launcher: str, **more) -> Way:
    options = {"distribution": {launcher: {"enabled": True} | more}}
    return Way(script, {"epochs": 50, "max-steps": STEPS}, options)


ALGO_2 = host("algo-2")
LAUNCHERS = {
    "mpi": (
        way("train_tf_horovod.py", "mpi", processes_per_host=1),
        [rank(0), rank(1), ALGO_2],
    ),
    "multi_worker_mirrored_strategy": (
        way("train_tf_multiworker.py", "multi_worker_mirrored_strategy"),
        [task("worker", 0), task("worker", 1), ALGO_2],
    ),
    "parameter_server": (
        way("train_tf_ps.py", "parameter_server"),
        [server("algo-2"), server("algo-1"), task("master", 0), task("worker", 0), ALGO_2],
    ),
}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    one = digits_endpoint(tmp_path_factory.mktemp("kills-tf"))
    yield one
    one.down()


@pytest.fixture
def session(endpoint, monkeypatch):
    return sdk_session(endpoint, monkeypatch)


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ten_kills_change_nothing(endpoint, session, launcher):
    how, victims = LAUNCHERS[launcher]
    kept, done = f"s3://{BUCKET}/kept/{launcher}", 0
    for number in range(KILLS):
        victim, step = victims[number % len(victims)], done + random.randrange(1, 2 * EVERY)
        job, seconds, _ = kill_at(endpoint, begin(session, how, kept), victim, step)
        assert job.status == "Failed" and job.description["FailureReason"], job.description
        begun = check_repeated(job, done)
        print(f"{launcher}: {victim.name} killed after {max(steps(job))} steps ({begun} before);")
        print(
            f"  ended {seconds:.1f} s later: {job.description['FailureReason'][:150]!r}", flush=True
        )
        done = max(steps(job))
    last = train(endpoint, session, how, kept)
    check_repeated(last, done)
    assert max(steps(last)) == STEPS
    alone = train(endpoint, session, how)
    if launcher == "parameter_server":  # asynchronous: no two runs end with equal weights
        one, other = (records(job, "epoch")[-1]["test_accuracy"] for job in (alone, last))
        assert abs(one - other) < 0.05
    else:
        assert len(set(hashes(last).values())) == 1
        assert hashes(last) == hashes(alone)


def check_repeated(job, done: int) -> int:
    """The step that the job went on from: at most one interval before the last one done."""
    resumed = records(job, "resumed")
    begun = resumed[0]["step"] if resumed else 0
    assert done - begun <= EVERY, f"{job.name}: {done} were done, {begun} gone on from"
    return begun
