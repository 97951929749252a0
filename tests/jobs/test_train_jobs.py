"""Files of scripts/train as jobs on two instances, and by hand: the same weights.

The jobs run at the same time. Speeds mean nothing here; weights do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kill_harness import JOB_SECONDS, TRAIN, digits_endpoint, hashes, records

from endpoint_harness import BUCKET, Job, estimator, start
from workshop.launch.horovod import horovod_status
from workshop.launch.mpirun import mpirun_command
from workshop.launch.processes import TORCHRUN

LAUNCHER = TRAIN.parent / "launch" / "local_tf_cluster.py"
PYTORCH = {"kind": "pytorch", "image_uri": "registry.invalid/pytorch-training:2.2.0-cpu-py310"}
SETTINGS = {"max-steps": 24, "log-every": 0, "threads-per-rank": 1}  # into the second epoch
# file -> the key of `distribution`, and an estimator's further options
LAUNCHERS = {
    "train_torch_ddp.py": ("torch_distributed", PYTORCH),
    "train_tf_horovod.py": ("mpi", {}),
    "train_tf_multiworker.py": ("multi_worker_mirrored_strategy", {}),
    "train_tf_ps.py": ("parameter_server", {}),
}
# Started only by `make soak`: their launchers are those above, or none.
MORE = {
    "train_torch_fsdp.py": ("torch_distributed", PYTORCH),
    "train_tf_fit.py": ("mpi", {}),
    "train_tf_mirrored.py": (None, {"instance_count": 1}),  # two logical CPUs
}
if not horovod_status().available:
    del LAUNCHERS["train_tf_horovod.py"], MORE["train_tf_fit.py"]
SYNCHRONOUS = [name for name in LAUNCHERS if name != "train_tf_ps.py"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    one = digits_endpoint(tmp_path_factory.mktemp("train-jobs"))
    request.addfinalizer(one.down)
    return one


def ended(endpoint, launchers: dict) -> dict[str, Job]:
    """Start a job of each file, all at the same time; return them when they have ended."""
    import sagemaker

    with pytest.MonkeyPatch.context() as patch:
        for name, value in endpoint.env.items():
            patch.setenv(name, value)
        session = sagemaker.Session(default_bucket=BUCKET)
        channels = {name: f"s3://{BUCKET}/digits/{name}" for name in ("training", "test")}
        started = {}
        for name, (key, more) in launchers.items():
            options = {"source_dir": str(TRAIN)} | more
            if key:
                options["distribution"] = {key: {"enabled": True}}
            settings = dict(SETTINGS)  # the SDK writes its own entries into it
            made = estimator(session, name, hyperparameters=settings, **options)
            started[name] = start(made, channels)
    return {name: endpoint.wait(job, JOB_SECONDS) for name, job in started.items()}


@pytest.fixture(scope="module")
def jobs(endpoint) -> dict[str, Job]:
    """A job of each file of LAUNCHERS."""
    return ended(endpoint, LAUNCHERS)


def by_hand(name: str, digits: Path, folder: Path) -> set[str]:
    """Run the file with two ranks on this machine; the hashes of their weights."""
    command = [sys.executable, str(TRAIN / name)]
    command += ["--training", str(digits / "training"), "--test", str(digits / "test")]
    command += [f"--{key}={value}" for key, value in SETTINGS.items()]
    command += ["--save-to", str(folder / "model")]
    if "torch" in name:
        command = [*TORCHRUN, "--standalone", "--nproc_per_node", "2", *command[1:]]
    elif "horovod" in name or "fit" in name:
        command = mpirun_command(2, command)
    elif "multiworker" in name:
        command = [sys.executable, str(LAUNCHER), "--workers", "2", *command[1:]]
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=os.environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = [line[line.index('{"event"') :] for line in done.stdout.splitlines() if "sha256" in line]
    assert len(told) == 2
    return {one.split('"weights_sha256": "')[1][:64] for one in told}


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_job_trains_what_the_file_trains_by_hand(jobs, tmp_path, name):
    check_same_weights(jobs[name], name, tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("name", MORE)
def test_a_job_of_the_other_files_trains_what_they_train_by_hand(endpoint, tmp_path, name):
    check_same_weights(ended(endpoint, {name: MORE[name]})[name], name, tmp_path)


def check_same_weights(job: Job, name: str, tmp_path: Path) -> None:
    """Two ranks of the job, and two ranks started by hand, ended with the same weights."""
    from data_prep import digits

    assert job.status == "Completed", job.description.get("FailureReason")
    assert sorted(hashes(job)) == [0, 1]
    made = digits.prepare(tmp_path / "digits", as_tfrecord=False, quiet=True)
    assert set(hashes(job).values()) == by_hand(name, Path(made), tmp_path)


def test_a_parameter_servers_job_trains(jobs):
    """Asynchronous: no two runs end with the same weights."""
    job = jobs["train_tf_ps.py"]
    assert job.status == "Completed", job.description.get("FailureReason")
    assert records(job, "start")[0]["world_size"] == 1, "the first of two instances coordinates"
    assert len({one["ps"] for one in records(job, "variable")}) == 2, "each instance has a server"
    losses = [one["train_loss"] for one in records(job, "epoch")]
    assert len(losses) == 2 and losses[1] < losses[0]
    assert len(hashes(job)) == 1
