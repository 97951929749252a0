"""Jobs on an emulator that a benchmark starts for itself, and that ends with it."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3

import local_sagemaker
from workshop.jobs.logs import LogReader

BUCKET = "bench"
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/bench"
POLL_SECONDS = 0.05


class JobsEmulator:
    """Clients of a running emulator, and a bucket. env: the variables that point there."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.key = env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
        self.s3, self.sagemaker, self.logs = map(self._client, ("s3", "sagemaker", "logs"))
        self.s3.create_bucket(Bucket=BUCKET)

    def _client(self, name: str):
        return boto3.client(
            name,
            endpoint_url=self._env["AWS_ENDPOINT_URL"],
            region_name=self._env["AWS_DEFAULT_REGION"],
            aws_access_key_id=self.key[0],
            aws_secret_access_key=self.key[1],
        )

    def put_source(self, key: str, files: Mapping[str, bytes]) -> str:
        """Pack files (name -> content) as a job's source; its address."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
        self.s3.put_object(Bucket=BUCKET, Key=key, Body=buffer.getvalue())
        return f"s3://{BUCKET}/{key}"

    def run(
        self,
        name: str,
        source: str,
        program: str,
        *,
        instances: int,
        processes: int | None = None,
        hyperparameters: Mapping | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Run a job to its end; its log's lines, host by host.

        processes: started by mpirun on each instance; None: the script itself, once on each.
        Raises RuntimeError with the FailureReason if it failed.
        """
        parameters = {"sagemaker_program": program, "sagemaker_submit_directory": source}
        if processes:
            parameters["sagemaker_mpi_enabled"] = True
            parameters["sagemaker_mpi_num_of_processes_per_host"] = processes
        parameters |= hyperparameters or {}
        request = {
            "TrainingJobName": name,
            "RoleArn": ROLE,
            "AlgorithmSpecification": {
                "TrainingImage": "tensorflow-training",
                "TrainingInputMode": "File",
            },
            "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
            "ResourceConfig": {
                "InstanceCount": instances,
                "InstanceType": "ml.m5.xlarge",
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": 900},
            "HyperParameters": {key: json.dumps(value) for key, value in parameters.items()},
            "Environment": dict(environment or {}),
        }
        self.sagemaker.create_training_job(**request)
        while True:
            told = self.sagemaker.describe_training_job(TrainingJobName=name)
            if told["TrainingJobStatus"] == "Completed":
                return [line.text for line in LogReader(self.logs, name).new_lines()]
            if told["TrainingJobStatus"] != "InProgress":
                raise RuntimeError(f"{name}: {told.get('FailureReason')}")
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def emulator() -> Iterator[tuple[JobsEmulator, Path]]:
    """An emulator of its own, and a folder; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        state = Path(folder) / "state"
        running = local_sagemaker.start(state, 0)
        try:
            yield JobsEmulator(local_sagemaker.environment(state, running.port)), Path(folder)
        finally:
            local_sagemaker.stop(state)


def sources(folder: Path) -> dict[str, bytes]:
    """A folder's Python files, as put_source takes them."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*.py")}
