"""What tests of jobs share beside the pytest plugin: scripts, requests, what to wait for."""

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import boto3
import psutil
import pytest
from botocore.config import Config

from local_sagemaker import pytest_plugin
from local_sagemaker.pytest_plugin import BUCKET, ROLE, Emulator, TrainingJob

SCRIPTS = Path(__file__).parent / "scripts"
IMAGE = "registry.invalid/tensorflow-training:2.18-cpu-py310"
captured = functools.partial(subprocess.run, capture_output=True, text=True)


def executable(path: Path, text: str) -> Path:
    """Write a program. Returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def client_of(emulator: Emulator, service: str, key: str = "", secret: str = "", **options):
    """A boto3 client that asks once. key, secret: another's. options: boto3's own."""
    once = Config(retries={"total_max_attempts": 1}, read_timeout=60, max_pool_connections=64)
    return boto3.client(
        service,
        endpoint_url=emulator.env["AWS_ENDPOINT_URL"],
        region_name="us-east-1",
        aws_access_key_id=key or emulator.env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=secret or emulator.env["AWS_SECRET_ACCESS_KEY"],
        **({"config": once} | options),
    )


def python(code: str) -> list[str]:
    """A command that runs this code."""
    return [sys.executable, "-c", code]


def unpacked(emulator: Emulator, uri: str) -> dict[str, bytes]:
    """The files of a tar.gz in S3: name -> content."""
    with tarfile.open(fileobj=io.BytesIO(emulator.get(uri))) as archive:
        return {item.name: archive.extractfile(item).read() for item in archive if item.isfile()}


def estimator(session, entry_point: str, kind: str = "tensorflow", **options):
    """An estimator of the unmodified SDK for a script of scripts/."""
    return pytest_plugin.estimator(session, SCRIPTS / entry_point, kind, **options)


def start(estimator_, inputs: object = "default") -> str:
    """Begin a job with the channel that the fixture `emulator` filled; its name."""
    inputs = {"training": f"s3://{BUCKET}/data"} if inputs == "default" else inputs
    return pytest_plugin.start(estimator_, inputs)


def request(name: str, **changes) -> dict:
    """A CreateTrainingJob request as the SDK would send it, for tests of the API itself."""
    body = {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
        "ResourceConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": {
            "sagemaker_program": '"hello.py"',
            "sagemaker_submit_directory": f'"s3://{BUCKET}/code/source.tar.gz"',
        },
    }
    return body | changes


def command_request(name: str, command: list[str], instances: int = 1, **changes) -> dict:
    """A request whose instances run `command` in the toolkit's place. It needs namespaces."""
    body = request(name, **changes)
    body.pop("HyperParameters")
    body["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": command[:1],
        "ContainerArguments": command[1:],
    }
    body["ResourceConfig"]["InstanceCount"] = instances
    return body


def ended(emulator: Emulator, body: dict) -> TrainingJob:
    """A job that was created by this request, once it has ended."""
    emulator.client("sagemaker").create_training_job(**body)
    return emulator.wait(body["TrainingJobName"])


def completed(job: TrainingJob) -> TrainingJob:
    """The job, which must have ended well."""
    assert job.status == "Completed", job.failure_reason
    return job


def records(job: TrainingJob, start: str) -> list:
    """The JSON that a job printed after `start`; it must have ended well."""
    return [json.loads(line) for line in completed(job).lines(start)]


def begin_and_stop(emulator: Emulator, name: str, **changes) -> str:
    """A job that is told to stop before its script begins; its ARN."""
    api = emulator.client("sagemaker")
    arn = api.create_training_job(**request(name, **changes))["TrainingJobArn"]
    api.stop_training_job(TrainingJobName=name)
    return arn


def processes_with(text: str) -> list[str]:
    """The command lines of living processes that have `text` there or in their environment."""
    commands = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and text in str((process.cmdline(), process.environ())):
                commands.append(" ".join(process.cmdline()))
    return commands


def until(condition: Callable[[], Any], seconds: float = 60, missing: object = "") -> Any:
    """Wait for a value of `condition()` that is true; return it. Fails the test after `seconds`.

    missing: what the failure says; a function is called for it.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            pytest.fail(f"not within {seconds:g} s: {missing() if callable(missing) else missing}")
        time.sleep(0.1)  # to look at all processes takes a while, too
    return value


def until_status(emulator: Emulator, name: str, status: str, seconds: float = 180) -> None:
    """Wait until a training job has this secondary status."""
    api = emulator.client("sagemaker")

    def now() -> str:
        return api.describe_training_job(TrainingJobName=name)["SecondaryStatus"]

    until(lambda: now() == status, seconds, now)


def until_gone(name: str, seconds: float = 60) -> None:
    """Fail the test if processes of a job are still there after `seconds`."""
    until(lambda: not processes_with(name), seconds, lambda: processes_with(name))


def wait_until_gone(pids: Iterable[int], seconds: float = 60) -> None:
    for pid in pids:
        until(lambda pid=pid: gone(pid), seconds, f"process {pid} lives on")


def gone(pid: int) -> bool:
    """Whether a process has ended, even if nobody has reaped it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def until_log(emulator: Emulator, name: str, text: str, seconds: float = 180) -> None:
    """Wait for a line in a job's log. Fails the test after `seconds`."""

    def logged() -> bool:
        return any(text in line for lines in emulator.log(name).values() for line in lines)

    until(logged, seconds, f"a line {text!r}: the script never began")
