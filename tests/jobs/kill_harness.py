"""Kill processes of a running job in the middle, see how it ends, and train on in a second job.

way = Way("train_torch_ddp.py", {"max-steps": 300}, {"distribution": ...})
whole = train(endpoint, session, way)
told = kill_and_resume(endpoint, session, way, rank(1), step=50, whole=whole)
"""

from __future__ import annotations

import dataclasses
import json
import signal
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import psutil

from data_prep import digits
from endpoint_harness import BUCKET, Endpoint, Job, estimator, start, until_gone

TRAIN = Path(__file__).parent.parent.parent / "scripts" / "train"
END_SECONDS = 30.0  # from the kill to the job's end
START_SECONDS = 240.0  # until the ranks have begun, on a machine that may be busy
JOB_SECONDS = 420.0
EVERY = 20  # steps from one checkpoint to the next
COMMON = {"log-every": 1, "checkpoint-every": EVERY, "threads-per-rank": 1}


@dataclasses.dataclass(frozen=True)
class Way:
    """A script and how it is started. settings: its flags. options: an estimator's."""

    entry_point: str
    settings: dict
    options: dict


@dataclasses.dataclass(frozen=True)
class Victim:
    """Whom to kill: `picks` is asked with the environment and the command line of each process."""

    name: str
    picks: Callable[[dict[str, str], list[str]], bool]


@dataclasses.dataclass(frozen=True)
class Told:
    """What a kill did. seconds: from the kill to the job's end. repeated: steps done twice."""

    victim: str
    killed_after: int
    seconds: float
    resumed_from: int
    repeated: int
    reason: str


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


def digits_endpoint(folder: Path) -> Endpoint:
    """An endpoint whose bucket holds the digits. Call its `down` at the end."""
    one = Endpoint(folder / "state")
    one.client("s3").create_bucket(Bucket=BUCKET)
    made = digits.prepare(folder / "digits", as_tfrecord=False, quiet=True)
    for path in Path(made).glob("*/part-*"):
        one.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    return one


def begin(session, way: Way, checkpoints: str | None) -> str:
    """Start a job; its name. checkpoints: an S3 URI."""
    options = {"source_dir": str(TRAIN)} | way.options
    if checkpoints:
        options["checkpoint_s3_uri"] = checkpoints
    one = estimator(session, way.entry_point, hyperparameters=COMMON | way.settings, **options)
    return start(one, {name: f"s3://{BUCKET}/digits/{name}" for name in ("training", "test")})


def train(endpoint: Endpoint, session, way: Way, checkpoints: str | None = None) -> Job:
    """Run a job to its end, which must be Completed."""
    job = endpoint.wait(begin(session, way, checkpoints), JOB_SECONDS)
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


def kill_at(endpoint: Endpoint, name: str, victim: Victim, step: int) -> tuple[Job, float, int]:
    """Kill the victim once `step` was printed; the ended job, the seconds it took, the step.

    Fails if the job takes longer than END_SECONDS to end, or leaves a process.
    """
    _until_step(endpoint, name, 1, START_SECONDS)
    found = _processes(name, victim)
    assert found, f"no process of {name} is {victim.name}"
    reached = _until_step(endpoint, name, step, JOB_SECONDS)
    for process in found:
        process.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    job = endpoint.wait(name, END_SECONDS)
    seconds = time.monotonic() - killed
    until_gone(name)
    return job, seconds, reached


def kill_and_resume(
    endpoint: Endpoint, session, way: Way, victim: Victim, step: int, whole: Job
) -> Told:
    """The whole story; fails unless the second job ends with the weights of `whole`."""
    checkpoints = f"s3://{BUCKET}/kills/{uuid.uuid4().hex[:8]}"
    job, seconds, reached = kill_at(endpoint, begin(session, way, checkpoints), victim, step)
    assert job.status == "Failed", job.description
    reason = job.description["FailureReason"]
    assert reason, "no reason is given"
    again = train(endpoint, session, way, checkpoints)
    (resumed,) = records(again, "resumed")
    last = max(steps(job))
    told = Told(victim.name, reached, seconds, resumed["step"], last - resumed["step"], reason)
    print(f"\n{way.entry_point}: {told}", flush=True)
    assert steps(again) == list(range(resumed["step"] + 1, max(steps(whole)) + 1))
    assert told.repeated <= EVERY
    assert hashes(again) == hashes(whole)
    return told


def _until_step(endpoint: Endpoint, name: str, step: int, seconds: float) -> int:
    deadline = time.monotonic() + seconds
    while True:
        reached = max(steps(Job(name, {}, endpoint.log(name))), default=0)
        if reached >= step:
            return reached
        assert time.monotonic() < deadline, f"{name} is at step {reached}, not {step}"
        told = endpoint.client("sagemaker").describe_training_job(TrainingJobName=name)
        status, reason = told["TrainingJobStatus"], told.get("FailureReason")
        assert status == "InProgress", f"{name} ended at step {reached}: {status} {reason}"
        time.sleep(0.2)


def _processes(name: str, victim: Victim) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
            if env.get("LOCAL_SAGEMAKER_JOB", "").endswith(f"/{name}") and victim.picks(
                env, process.cmdline()
            ):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found
