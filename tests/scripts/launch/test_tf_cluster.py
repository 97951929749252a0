"""scripts/launch/local_tf_cluster.py, and hosts beside parameter servers that train alone."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from emulator_harness import until
from script_harness import DEMOS, LAUNCHER

pytestmark = pytest.mark.timeout(600)


@pytest.mark.soak  # lesson 03 runs it as a job
def test_hosts_without_a_strategy_train_alone(run, tmp_path):
    """Half of the digits each, a model each, and nothing looks wrong."""
    by_class = ["--shard-by", "class", "--log-every", "0", "--epochs", "12"]
    cluster = [sys.executable, LAUNCHER, "--workers", "1", "--ps", "1"]
    done = run(*cluster, DEMOS / "train_tf_ps_broken.py", *by_class)
    known = [[c for c in range(10) if e["accuracy"][c] > 0] for e in done.events("classes")]
    assert sorted(known) == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]
    assert len(set(done.hashes.values())) == 2
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()


def test_a_worker_that_fails_ends_the_others(tmp_path):
    script = tmp_path / "one_fails.py"
    script.write_text(
        "import json, os, time\n"
        "time.sleep(600 * json.loads(os.environ['TF_CONFIG'])['task']['index'])\n"
        "raise SystemExit(3)\n"
    )
    done = subprocess.run([sys.executable, LAUNCHER, "--workers", "2", script], timeout=60)
    assert done.returncode == 1
    assert not left(script)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends them by itself")
def test_workers_end_with_a_launcher_that_is_killed(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text("import time\ntime.sleep(600)\n")
    launcher = subprocess.Popen([sys.executable, LAUNCHER, "--workers", "2", script])
    until(lambda: len(left(script)) == 2)
    launcher.kill()
    launcher.wait()
    until(lambda: not left(script))


def left(script: Path) -> list[int]:
    """The workers that run the script; the launcher is none."""
    processes = psutil.process_iter(["cmdline"])  # None of one that has ended
    return [p.pid for p in processes if (p.info["cmdline"] or [])[1:2] == [os.fspath(script)]]
