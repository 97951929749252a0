"""Processes of running jobs are killed: none hangs, and those that resume train nothing else than
a job that was left alone. Ten times for each launcher that resumes in `make soak`.
"""

from __future__ import annotations

import dataclasses
import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from data_prep import digits
from endpoint_harness import (
    BUCKET,
    Endpoint,
    Job,
    estimator,
    sdk_session,
    start,
    until_gone,
)

TRAIN = Path(__file__).parent.parent.parent / "scripts" / "train"
END_SECONDS = 30.0  # from the kill to the job's end
START_SECONDS = 240.0  # until the ranks have begun, on a machine that may be busy
JOB_SECONDS = 420.0
KILLS = 10
EVERY = 20  # steps from one checkpoint to the next
STEPS = KILLS * 5 * EVERY  # each kill is seen some dozens of steps late
COMMON = {"log-every": 1, "threads-per-rank": 1, "max-steps": STEPS}
RESUMING = ("torch_distributed", "none")  # the TensorFlow scripts write no checkpoints
pytestmark = pytest.mark.timeout(3600)


@dataclasses.dataclass(frozen=True)
class Victim:
    """Whom to kill: `picks` is asked with the environment and the command line of each process."""

    name: str
    picks: Callable[[dict[str, str], list[str]], bool]

    def processes(self, job: str) -> list[psutil.Process]:
        """Those of a job."""
        found = []
        for process in psutil.process_iter():
            try:
                env = process.environ()
                if env.get("LOCAL_SAGEMAKER_JOB", "").endswith(f"/{job}") and self.picks(
                    env, process.cmdline()
                ):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found


def rank(number: int) -> Victim:
    """The process of a rank, under torchrun or mpirun."""
    names = ("RANK", "OMPI_COMM_WORLD_RANK")
    return Victim(
        f"rank {number}",
        lambda env, _: next((env[one] for one in names if one in env), "") == str(number),
    )


def host(name: str) -> Victim:
    """All processes of an instance."""
    return Victim(f"host {name}", lambda env, _: env.get("LOCAL_SAGEMAKER_HOST") == name)


def program(script: str) -> Victim:
    """The process that runs a script without a launcher."""
    # The toolkit's command is: python -u SCRIPT --flags, or without -u.
    return Victim(script, lambda _, line: any(one.endswith(script) for one in line[1:3]))


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


def launched(launcher: str, **more) -> dict:
    return {"distribution": {launcher: {"enabled": True} | more}}


ALGO_2 = host("algo-2")
PYTORCH = {
    "kind": "pytorch",
    "image_uri": "registry.invalid/pytorch-training:2.2.0-cpu-py310",
}
TORCHRUN = PYTORCH | launched("torch_distributed")
# The toolkit starts a rank for each GPU of the instance type; without GPUs, one.
TWO_EACH = {"environment": {"LOCAL_SAGEMAKER_GPUS": "2"}}
# The script, how it is started, and whom to kill, one after the other.
WAYS = {
    "mpi": (
        "train_tf_horovod.py",
        launched("mpi", processes_per_host=1),
        [rank(0), rank(1), ALGO_2],
    ),
    "multi_worker_mirrored_strategy": (
        "train_tf_mirrored.py",
        launched("multi_worker_mirrored_strategy"),
        [task("worker", 0), task("worker", 1), ALGO_2],
    ),
    "parameter_server": (
        "train_tf_ps.py",
        launched("parameter_server"),
        [server("algo-2"), server("algo-1"), task("master", 0), task("worker", 0), ALGO_2],
    ),
    "torch_distributed": (
        "train_torch_ddp.py",
        TORCHRUN | TWO_EACH,
        [rank(0), rank(1), rank(3), ALGO_2],
    ),
    "none": (
        "train_torch.py",
        PYTORCH | {"instance_count": 1},
        [program("train_torch.py"), host("algo-1")],
    ),
}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    """An endpoint whose bucket holds the digits."""
    folder = tmp_path_factory.mktemp("kills")
    one = Endpoint(folder / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    made = digits.prepare(folder / "digits", as_tfrecord=False, quiet=True)
    for path in Path(made).glob("*/part-*"):
        one.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    return one


@pytest.fixture
def session(endpoint, monkeypatch):
    return sdk_session(endpoint, monkeypatch)


def begin(session, script: str, options: dict, checkpoints: str | None) -> str:
    """Start a job; its name. checkpoints: an S3 URI."""
    options = {"source_dir": str(TRAIN), "checkpoint_s3_uri": checkpoints} | options
    flags = COMMON | {"epochs": 400}
    flags |= {} if "_tf_" in script else {"checkpoint-every": EVERY}
    one = estimator(session, script, hyperparameters=flags, **options)
    return start(one, {name: f"s3://{BUCKET}/digits/{name}" for name in ("training", "test")})


def train(endpoint, session, script: str, options: dict, checkpoints: str | None = None) -> Job:
    """Run a job to its end, which must be Completed."""
    job = endpoint.wait(begin(session, script, options, checkpoints), JOB_SECONDS)
    assert job.status == "Completed", job.description.get("FailureReason")
    return job


def records(job: Job, event: str) -> list[dict]:
    """The JSON records of one kind that the script printed; lines that were cut off are left."""
    found = []
    for line in job.lines(""):
        if line.startswith('{"event"'):
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
    return [one for one in found if one["event"] == event]


def steps(job: Job) -> list[int]:
    return [one["step"] for one in records(job, "step")]


def hashes(job: Job) -> dict[int, str]:
    """The hash of every rank's weights at the end."""
    return {one["rank"]: one["weights_sha256"] for one in records(job, "weights")}


def kill_at(endpoint: Endpoint, name: str, victim: Victim, step: int) -> Job:
    """Kill the victim once `step` was printed; the job, which is Failed with a reason.

    Fails if the job takes longer than END_SECONDS to end, or leaves a process.
    """
    _until_step(endpoint, name, 1, START_SECONDS)
    found = victim.processes(name)
    assert found, f"no process of {name} is {victim.name}"
    _until_step(endpoint, name, step, JOB_SECONDS)
    for process in found:
        process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    job = endpoint.wait(name, END_SECONDS)
    seconds = time.monotonic() - killed
    until_gone(name)
    assert job.status == "Failed" and job.description["FailureReason"], job.description
    reason = job.description["FailureReason"][:150]
    print(f"{victim.name} killed after {max(steps(job))} steps;", flush=True)
    print(f"  ended {seconds:.1f} s later: {reason!r}", flush=True)
    return job


def _until_step(endpoint: Endpoint, name: str, step: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (reached := max(steps(Job(name, {}, endpoint.log(name))), default=0)) < step:
        assert time.monotonic() < deadline, f"{name} is at step {reached}, not {step}"
        told = endpoint.client("sagemaker").describe_training_job(TrainingJobName=name)
        status, reason = told["TrainingJobStatus"], told.get("FailureReason")
        assert status == "InProgress", f"{name} ended at step {reached}: {status} {reason}"
        time.sleep(0.2)


def test_a_killed_instance_ends_the_job(endpoint, session):
    """In 30 s, with a reason, and what it has trained is in S3. Lesson 10 resumes from there."""
    kept = f"s3://{BUCKET}/killed"
    name = begin(session, "train_torch_ddp.py", TORCHRUN, kept)
    kill_at(endpoint, name, ALGO_2, EVERY + 1)
    assert endpoint.aws().objects(kept, "us-east-1")


@pytest.mark.soak
@pytest.mark.parametrize("launcher", [name for name in WAYS if name not in RESUMING])
def test_whoever_is_killed_the_job_ends(endpoint, session, launcher):
    script, options, victims = WAYS[launcher]
    for victim in victims:
        name = begin(session, script, options, None)
        kill_at(endpoint, name, victim, random.randrange(1, 2 * EVERY))


@pytest.mark.soak
@pytest.mark.parametrize("launcher", RESUMING)
def test_ten_kills_change_nothing(endpoint, session, launcher):
    """Each job resumes from the checkpoints of the one before, and is killed; the last may end."""
    script, options, victims = WAYS[launcher]
    kept, done = f"s3://{BUCKET}/kept/{launcher}", 0
    for number in range(KILLS):
        name = begin(session, script, options, kept)
        step = done + random.randrange(1, 2 * EVERY)
        job = kill_at(endpoint, name, victims[number % len(victims)], step)
        check_repeated(job, done)
        done = max(steps(job))
    last = train(endpoint, session, script, options, kept)
    check_repeated(last, done)
    assert max(steps(last)) == STEPS
    alone = train(endpoint, session, script, options)
    assert len(set(hashes(last).values())) == 1
    assert hashes(last) == hashes(alone)


def check_repeated(job: Job, done: int) -> None:
    """The step that the job went on from: at most one interval before the last one done."""
    resumed = records(job, "resumed")
    begun = resumed[0]["step"] if resumed else 0
    assert done - begun <= EVERY, f"{job.name}: {done} were done, {begun} gone on from"
