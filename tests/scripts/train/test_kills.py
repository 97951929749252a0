"""Processes of running jobs are killed: none hangs, and those that resume train nothing else than
a job that was left alone. Ten times for each launcher that resumes in `make soak`.
"""

import contextlib
import json
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from emulator_harness import until_gone

from data_prep import digits
from local_sagemaker.pytest_plugin import ANY_IMAGE, BUCKET, Emulator, TrainingJob, estimator, start

TRAIN = Path(__file__).parents[3] / "scripts" / "train"
END_SECONDS = 30.0  # from the kill to the job's end
START_SECONDS = 240.0  # until the ranks have begun, on a machine that may be busy
JOB_SECONDS = 420.0
KILLS = 10
EVERY = 20  # steps from one checkpoint to the next
STEPS = KILLS * 5 * EVERY  # each kill is seen some dozens of steps late
COMMON = {"log-every": 1, "threads-per-rank": 1, "max-steps": STEPS}
RESUMING = ("torch_distributed", "none")  # the TensorFlow scripts write no checkpoints
pytestmark = [pytest.mark.soak, pytest.mark.timeout(3600)]


# Whom to kill: what is true of the environment and the command line of a process.
Picks = Callable[[dict[str, str], list[str]], bool]


def rank(number: int) -> Picks:
    """The process of a rank, under torchrun or mpirun."""
    return lambda env, _: env.get("RANK", env.get("OMPI_COMM_WORLD_RANK")) == str(number)


def host(name: str) -> Picks:
    """All processes of an instance."""
    return lambda env, _: env.get("LOCAL_SAGEMAKER_HOST") == name


def program(script: str) -> Picks:
    """The process that runs a script without a launcher."""
    # The toolkit's command is: python -u SCRIPT --flags, or without -u.
    return lambda _, line: any(word.endswith(script) for word in line[1:3])


def task(kind: str, index: int) -> Picks:
    """The script's process of a task of TF_CONFIG; SageMaker calls the coordinator master."""
    wanted_task = {"type": kind, "index": index}
    return lambda env, _: json.loads(env.get("TF_CONFIG", "{}")).get("task") == wanted_task


def server(name: str) -> Picks:
    """The parameter server beside the script on this instance."""
    module = "local_sagemaker.container.parameter_server"
    return lambda env, line: env.get("LOCAL_SAGEMAKER_HOST") == name and module in line


def processes_of(job: str, picks: Picks) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            env, line = process.environ(), process.cmdline()
            if env.get("LOCAL_SAGEMAKER_JOB", "").endswith(f"/{job}") and picks(env, line):
                processes.append(process)
    return processes


def launched(launcher: str, **options) -> dict:
    return {"distribution": {launcher: {"enabled": True} | options}}


ALGO_2 = host("algo-2")
PYTORCH = {"framework": "pytorch", "image_uri": ANY_IMAGE}
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
def emulator(sagemaker_emulator, tmp_path_factory):
    """The emulator; its bucket holds the digits."""
    empty = tmp_path_factory.mktemp("digits") / "made"
    folder = digits.prepare(empty, quiet=True)
    for path in Path(folder).glob("*/part-*"):
        sagemaker_emulator.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    return sagemaker_emulator


def begin(sagemaker_session, script: str, options: dict, checkpoints: str | None) -> str:
    """Start a job; its name. checkpoints: an S3 URI."""
    options = {"framework": "tensorflow", "checkpoint_s3_uri": checkpoints} | options
    flags = COMMON | {"epochs": 400}
    flags |= {} if "_tf_" in script else {"checkpoint-every": EVERY}
    job = estimator(sagemaker_session, TRAIN / script, hyperparameters=flags, **options)
    return start(job, {name: f"s3://{BUCKET}/digits/{name}" for name in ("training", "test")})


def train(
    emulator, sagemaker_session, script: str, options: dict, checkpoints: str | None = None
) -> TrainingJob:
    """Run a job to its end, which must be Completed."""
    job = emulator.wait(begin(sagemaker_session, script, options, checkpoints), JOB_SECONDS)
    assert job.status == "Completed", job.description.get("FailureReason")
    return job


def records(job: TrainingJob, event: str) -> list[dict]:
    """The JSON records of one kind that the script printed; lines that were cut off are left."""
    events = []
    for line in job.lines(""):
        if line.startswith('{"event"'):
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
    return [record for record in events if record["event"] == event]


def steps(job: TrainingJob) -> list[int]:
    return [record["step"] for record in records(job, "step")]


def hashes(job: TrainingJob) -> dict[int, str]:
    """The hash of every rank's weights at the end."""
    return {record["rank"]: record["weights_sha256"] for record in records(job, "weights")}


def kill_at(emulator: Emulator, name: str, picks: Picks, step: int) -> TrainingJob:
    """Kill whom it picks once `step` was printed; the job, which is Failed with a reason.

    Fails if the job takes longer than END_SECONDS to end, or leaves a process.
    """
    _until_step(emulator, name, 1, START_SECONDS)
    processes = processes_of(name, picks)
    assert processes, f"no process of {name} is picked"
    _until_step(emulator, name, step, JOB_SECONDS)
    for process in processes:
        process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    job = emulator.wait(name, END_SECONDS)
    seconds = time.monotonic() - killed
    until_gone(name)
    assert job.status == "Failed" and job.description["FailureReason"], job.description
    reason = job.description["FailureReason"][:150]
    print(f"{len(processes)} processes killed after {max(steps(job))} steps;", flush=True)
    print(f"  ended {seconds:.1f} s later: {reason!r}", flush=True)
    return job


def _until_step(emulator: Emulator, name: str, step: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (reached := max(steps(TrainingJob(name, {}, emulator.log(name))), default=0)) < step:
        assert time.monotonic() < deadline, f"{name} is at step {reached}, not {step}"
        description = emulator.client("sagemaker").describe_training_job(TrainingJobName=name)
        status, reason = description["TrainingJobStatus"], description.get("FailureReason")
        assert status == "InProgress", f"{name} ended at step {reached}: {status} {reason}"
        time.sleep(0.2)


@pytest.mark.parametrize("launcher", [name for name in WAYS if name not in RESUMING])
def test_whoever_is_killed_the_job_ends(emulator, sagemaker_session, launcher):
    script, options, victims = WAYS[launcher]
    for victim in victims:
        name = begin(sagemaker_session, script, options, None)
        kill_at(emulator, name, victim, random.randrange(1, 2 * EVERY))


@pytest.mark.parametrize("launcher", RESUMING)
def test_ten_kills_change_nothing(emulator, sagemaker_session, launcher):
    """Each job resumes from the checkpoints of the one before, and is killed; the last may end."""
    script, options, victims = WAYS[launcher]
    checkpoints, done = f"s3://{BUCKET}/kept/{launcher}", 0
    for number in range(KILLS):
        name = begin(sagemaker_session, script, options, checkpoints)
        step = done + random.randrange(1, 2 * EVERY)
        job = kill_at(emulator, name, victims[number % len(victims)], step)
        check_repeated(job, done)
        done = max(steps(job))
    last = train(emulator, sagemaker_session, script, options, checkpoints)
    check_repeated(last, done)
    assert max(steps(last)) == STEPS
    alone = train(emulator, sagemaker_session, script, options)
    assert len(set(hashes(last).values())) == 1
    assert hashes(last) == hashes(alone)


def check_repeated(job: TrainingJob, done: int) -> None:
    """The step that the job went on from: at most one interval before the last one done."""
    resumed = records(job, "resumed")
    begun = resumed[0]["step"] if resumed else 0
    assert done - begun <= EVERY, f"{job.name}: {done} were done, {begun} gone on from"
