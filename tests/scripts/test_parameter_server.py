"""Every worker's updates reach the one model, and no process outlives the coordinator."""

import subprocess
import sys
import time

import pytest
from script_harness import LAUNCH_PS, SCRIPTS, Run, script_env

BY_CLASS = ["--shard-by", "class", "--log-every", "0"]


def check_learned_every_class(done: Run) -> None:
    """A model that saw half of the ten classes can be right on half of the test set at most."""
    assert done.accuracy >= 0.9, f"accuracy {done.accuracy}: some classes never reached the model"


@pytest.mark.slow
def test_every_workers_updates_reach_the_model(run, tmp_path):
    done = run(*LAUNCH_PS, "--workers", "2", "--ps", "1", "--", *BY_CLASS, "--epochs", "12")
    check_learned_every_class(done)
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()
    assert len(done.events("weights")) == 1
    assert all(epoch["mean_staleness"] >= 0 for epoch in done.events("epoch"))
    (known,) = done.events("classes")
    assert min(known["accuracy"]) > 0.5, "the model doesn't know every digit"
    shards = {shard["worker"]: shard["classes"] for shard in done.events("shard")}
    assert shards == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7, 9]}
    assert sum(variable["bytes"] for variable in done.events("variable")) == 4 * 13_706


@pytest.mark.slow
def test_the_check_finds_hosts_that_train_alone(run, tmp_path):
    broken = ["--script", SCRIPTS / "train_tf_ps_broken.py", "--", *BY_CLASS, "--epochs", "12"]
    done = run(*LAUNCH_PS, "--workers", "1", *broken)
    with pytest.raises(AssertionError, match="never reached the model"):
        check_learned_every_class(done)
    known = [[c for c in range(10) if e["accuracy"][c] > 0] for e in done.events("classes")]
    assert sorted(known) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert len(set(done.hashes.values())) == 2
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()  # nothing looks wrong


@pytest.fixture
def cluster(digits, tmp_path, monkeypatch):
    """Start a cluster that would train for ever; give its processes; kill what is left."""
    from common import launch_ps

    for name, value in script_env(digits, tmp_path / "model").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # a killed worker leaves its shard behind
    command = [sys.executable, str(SCRIPTS / "train_tf_ps.py"), "--epochs", "100000"]
    log = open(tmp_path / "log", "w")  # noqa: SIM115
    processes = launch_ps.start_cluster(command, workers=1, ps=1, output=log)
    yield processes
    for process in processes.values():
        process.kill()
        process.wait()


def wait_for_training(log) -> None:
    deadline = time.monotonic() + 120
    while '"event": "epoch"' not in log.read_text():
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.5)


@pytest.mark.slow
def test_workers_end_soon_after_the_coordinator_dies(cluster, tmp_path):
    wait_for_training(tmp_path / "log")
    cluster["master"].kill()
    assert cluster["worker-0"].wait(timeout=60) == 0
    assert "the coordinator at" in (tmp_path / "log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["worker-0", pytest.param("ps-0", marks=pytest.mark.soak)])
def test_the_coordinator_fails_soon_after_a_host_is_lost(cluster, tmp_path, lost):
    wait_for_training(tmp_path / "log")
    cluster[lost].kill()
    assert cluster["master"].wait(timeout=60) != 0
    if lost != "worker-0":
        assert cluster["worker-0"].wait(timeout=60) == 0
    assert not (tmp_path / "model").exists()


def test_refuses_to_pretend_without_workers(run):
    done = run(sys.executable, SCRIPTS / "train_tf_ps.py", check=False)
    assert done.code == 1
    assert "launch_ps.py" in done.stderr.splitlines()[-1]
    assert "instance_count" in done.stderr.splitlines()[-1]


def test_the_single_process_script_learns_and_its_model_serves(run, digits, tmp_path):
    assert run(sys.executable, SCRIPTS / "train_tf.py").accuracy >= 0.96
    code = (
        "import sys, numpy as np, tensorflow as tf\n"
        "serve = tf.saved_model.load(sys.argv[1]).signatures['serving_default']\n"
        "part = np.load(sys.argv[2])\n"
        "out = serve(images=tf.constant(part['images'], tf.float32))['probabilities'].numpy()\n"
        "assert out.shape == (360, 10) and np.allclose(out.sum(1), 1, atol=1e-5)\n"
        "assert np.mean(out.argmax(1) == part['labels']) >= 0.96\n"
    )
    model, part = tmp_path / "model" / "1", digits / "test" / "part-00000.npz"
    subprocess.run([sys.executable, "-c", code, model, part], check=True)
