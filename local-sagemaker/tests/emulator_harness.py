"""What the emulator's tests share beside its pytest plugin: scripts and requests."""

from __future__ import annotations

from pathlib import Path

from local_sagemaker import pytest_plugin
from local_sagemaker.pytest_plugin import BUCKET, ROLE

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
