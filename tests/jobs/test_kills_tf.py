"""Jobs of TensorFlow scripts that are killed, ten times for each launcher: none hangs, none
trains anything else than a job that was left alone.

Each job goes on from the checkpoints of the one before, and is killed again; the last may end.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kill_harness import instance, kill_at, last_step, parameter_server, rank, records

from data_prep import digits
from endpoint_harness import BUCKET, Endpoint, estimator, start

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
KILLS = 10
EVERY = 10  # steps from one checkpoint to the next
STEPS = KILLS * 6 * EVERY
SETTINGS = {"epochs": 40, "max-steps": STEPS, "log-every": 1, "threads-per-rank": 1}
BOTH = {"rank 0": rank(0), "rank 1": rank(1), "algo-2": instance("algo-2")}
SERVERS = {f"server of {host}": parameter_server(host) for host in ("algo-1", "algo-2")}
LAUNCHERS = {
    "train_tf_horovod.py": ("mpi", {"processes_per_host": 1}, BOTH),
    "train_tf_multiworker.py": ("multi_worker_mirrored_strategy", {}, BOTH),
    "train_tf_ps.py": ("parameter_server", {}, BOTH | SERVERS),
}
pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    """An endpoint whose bucket holds the digits."""
    folder = tmp_path_factory.mktemp("kills-tf")
    one = Endpoint(folder / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    made = digits.prepare(folder / "digits", as_tfrecord=False, quiet=True)
    for path in Path(made).glob("*/part-*"):
        one.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    return one


@pytest.fixture
def begin(endpoint, monkeypatch):
    """A function that begins a job of a script and gives its name."""
    for name, value in endpoint.env.items():
        monkeypatch.setenv(name, value)
    import sagemaker

    session = sagemaker.Session(default_bucket=BUCKET)

    def go(script: str, checkpoints: str | None) -> str:
        key, more, _ = LAUNCHERS[script]
        made = estimator(
            session,
            script,
            source_dir=str(SCRIPTS),
            distribution={key: {"enabled": True} | more},
            hyperparameters=SETTINGS | ({"checkpoint-every": EVERY} if checkpoints else {}),
            checkpoint_s3_uri=checkpoints,
        )
        inputs = {name: f"s3://{BUCKET}/digits/{name}" for name in ("training", "test")}
        return start(made, inputs)

    return go


@pytest.mark.parametrize("script", LAUNCHERS)
def test_ten_kills_change_nothing(endpoint, begin, script):
    kept = f"s3://{BUCKET}/kept/{script}"
    victims = list(LAUNCHERS[script][2].items()) * KILLS
    done = 0
    for what, victim in victims[:KILLS]:
        name = begin(script, kept)
        job = kill_at(endpoint, name, done + random.randrange(1, 2 * EVERY), victim)
        assert job.status == "Failed" and job.description["FailureReason"], (what, job.description)
        check_repeated(endpoint, name, done)
        done = max(done, last_step(endpoint, name))
        print(f"{what} killed after step {done}: {job.description['FailureReason'][:120]!r}")
    last = ended(endpoint, begin(script, kept))
    check_repeated(endpoint, last, done)
    assert last_step(endpoint, last) == STEPS
    alone = ended(endpoint, begin(script, None))
    if script == "train_tf_ps.py":  # asynchronous: no two runs end with equal weights
        one, other = (records(endpoint, name, "epoch")[-1] for name in (alone, last))
        assert abs(one["test_accuracy"] - other["test_accuracy"]) < 0.05
    else:
        assert hashes(endpoint, last) == hashes(endpoint, alone)


def check_repeated(endpoint, name: str, done: int) -> None:
    """The job went on from a checkpoint at most an interval before the last step done."""
    resumed = records(endpoint, name, "resumed")
    begun = resumed[0]["step"] if resumed else 0
    assert 0 <= done - begun <= EVERY, f"{name}: step {done} was done, {begun} gone on from"


def ended(endpoint, name: str) -> str:
    """The name of a job that was left alone, once it has ended."""
    job = endpoint.wait(name, seconds=600)
    assert job.status == "Completed", job.description
    return name


def hashes(endpoint, name: str) -> dict[int, str]:
    """rank -> the hash of its weights; all the same."""
    found = {one["rank"]: one["weights_sha256"] for one in records(endpoint, name, "weights")}
    assert sorted(found) == [0, 1] and len(set(found.values())) == 1
    return found
