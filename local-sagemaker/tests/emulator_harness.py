"""What tests of jobs share beside the pytest plugin: scripts, requests, what to wait for."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import psutil

from local_sagemaker import pytest_plugin
from local_sagemaker.pytest_plugin import BUCKET, ROLE, Emulator

SCRIPTS = Path(__file__).parent / "scripts"
IMAGE = "registry.invalid/tensorflow-training:2.18-cpu-py310"


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
        "ResourceConfig": {
            "InstanceCount": 1,
            "InstanceType": "ml.m5.xlarge",
            "VolumeSizeInGB": 1,
        },
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


def processes_with(text: str) -> list[str]:
    """The command lines of living processes that have `text` there or in their environment."""
    commands = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.pid != os.getpid() and text in str((process.cmdline(), process.environ())):
                commands.append(" ".join(process.cmdline()))
    return commands


def until_gone(name: str, seconds: float = 60) -> None:
    """Fail the test if processes of a job are still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while commands := processes_with(name):
        assert time.monotonic() < deadline, commands
        time.sleep(0.1)


def until_log(emulator: Emulator, name: str, text: str, seconds: float = 180) -> None:
    """Wait for a line in a job's log. Fails the test after `seconds`."""
    deadline = time.monotonic() + seconds
    while not any(text in line for lines in emulator.log(name).values() for line in lines):
        assert time.monotonic() < deadline, f"no line {text!r}: the script never began"
        time.sleep(0.1)
