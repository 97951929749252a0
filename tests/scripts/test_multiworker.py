"""MultiWorkerMirrored workers train what one process trains; without their all-reduce not."""

import json
import subprocess
import sys
import time

import psutil
import pytest
from script_harness import (
    HERE,
    SCRIPTS,
    check_equals,
    largest_difference,
    weights,
)

SECONDS = 280  # two processes that import TensorFlow, on a machine that may be busy
LAUNCH = [sys.executable, str(SCRIPTS / "common" / "launch_workers.py"), "--workers"]
# 24 steps reach into the second epoch: its shuffle must be the same on all workers, too.
STEPS = ["--max-steps", "24", "--log-every", "0"]
# Float32 sums in another order differ by an ulp or so a step: 6e-8 was measured on weights up to
# 0.4 after 30 steps. Ten times more is allowed; a missing all-reduce differs by 1e-3 and more.
TOLERANCE = 6e-7


@pytest.fixture(scope="module")
def reference(trained_alone) -> list:
    """The weights of one process after as many steps."""
    return trained_alone("train_tf.py", STEPS)


def test_two_workers_train_what_one_process_trains(run, reference, tmp_path):
    script = [*STEPS, "--dump-weights", tmp_path]
    done = run(*LAUNCH, "2", "--", *script, timeout=SECONDS, TMPDIR=str(tmp_path))
    check_equals(reference, tmp_path, 2, TOLERANCE)
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1
    assert done.events("start")[0]["world_size"] == 2
    assert done.events("start")[0]["local_batch_size"] == 32
    # Rank 0's model is kept, and the other rank's is nowhere.
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()
    assert not list(tmp_path.glob("not-rank-0-*"))


def test_the_comparison_finds_a_missing_all_reduce(run, reference, tmp_path):
    broken = ["--script", HERE / "broken_multiworker.py"]
    run(*LAUNCH, "2", *broken, "--", *STEPS, "--dump-weights", tmp_path, timeout=SECONDS)
    with pytest.raises(AssertionError, match="rank 1 differs"):
        check_equals(reference, tmp_path, 2, TOLERANCE)
    assert largest_difference(reference, weights(tmp_path, 0)) > 1000 * TOLERANCE


def test_alone_it_is_the_one_process_script(run, reference, tmp_path):
    run(sys.executable, SCRIPTS / "train_tf_multiworker.py", *STEPS, "--dump-weights", tmp_path)
    check_equals(reference, tmp_path, 1, TOLERANCE)


@pytest.mark.soak  # in make test, test_a_worker_that_fails_ends_the_others
def test_a_batch_that_cannot_be_split_ends_all_workers(run):
    done = run(*LAUNCH, "2", "--", "--global-batch-size", "65", check=False, timeout=SECONDS)
    assert done.code == 1
    assert "can't be split evenly among 2 ranks; choose 64 or 66" in done.stderr


def workers(*hosts, index=0):
    return {"cluster": {"worker": list(hosts)}, "task": {"type": "worker", "index": index}}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (None, (["localhost:0"], 0)),
        ({"environment": "cloud"}, (["localhost:0"], 0)),
        (workers("algo-1:8890", "algo-2:8890", index=1), (["algo-1:8890", "algo-2:8890"], 1)),
        (workers("algo-1:8890", index="0"), (["algo-1:8890"], 0)),
    ],
)
def test_who_takes_part_is_read_from_tf_config(monkeypatch, config, expected):
    from common.workers_tf import read_workers

    monkeypatch.delenv("TF_CONFIG", raising=False)
    if config is not None:
        monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    assert read_workers() == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no json", "not the JSON object expected"),
        ("[]", "not the JSON object expected"),
        (json.dumps(workers("a:1", index=1)), "not the JSON object expected"),
        (
            json.dumps({"cluster": {"master": ["a:1"], "ps": ["a:2"]}, "task": {"type": "master"}}),
            "TF_CONFIG names master, ps; .* wants workers only.*launch_workers.py",
        ),
    ],
)
def test_another_tf_config_names_the_remedy(monkeypatch, text, said):
    from common.errors import ScriptError
    from common.workers_tf import read_workers

    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ScriptError, match=said):
        read_workers()


def test_a_worker_that_fails_ends_the_others():
    from common.launch_workers import finish

    fails = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    waits = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert finish([waits, fails]) == 3
    assert waits.poll() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends them by itself")
def test_workers_end_with_a_launcher_that_is_killed(tmp_path):
    script, pids = tmp_path / "sleep.py", tmp_path / "pids"
    script.write_text(
        f"import os, time\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\ntime.sleep(600)"
    )
    launcher = subprocess.Popen([*LAUNCH, "2", "--script", str(script)])
    deadline = time.monotonic() + 60
    while not (pids.exists() and len(pids.read_text().split()) == 2):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    launcher.kill()
    launcher.wait()
    workers = [int(one) for one in pids.read_text().split()]
    while any(map(is_alive, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_alive, workers))


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and was not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
