"""local-sagemaker beside moto's server: start, memory, a job on two instances, requests a second.

    python local-sagemaker/beside_moto.py

moto computes nothing: it says at once that a job is completed. What else README.md of
local-sagemaker compares needs Docker.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import psutil
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

import local_sagemaker
from local_sagemaker.pytest_plugin import ANY_IMAGE, BUCKET, FINAL, ROLE

COMMANDS = {
    "local-sagemaker": ["-m", "local_sagemaker", "start", "--foreground", "--state", "{state}"],
    "moto": ["-m", "moto.server"],
}
ROUNDS = 5
DESCRIPTIONS, PUTS = 200, 50
SCRIPT = """\
import time

print("first line", time.time(), flush=True)
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
for _ in range(100):
    model(torch.randn(64, 4)).square().mean().backward()
dist.destroy_process_group()
"""
ROWS = {
    "start": ("start until it answers, s", 2),
    "memory": ("memory before the job, MB", 0),
    "create": ("CreateTrainingJob answered, ms", 0),
    "first_line": ("from there to the script's first line, s", 2),
    "job": ("the job on two instances until Completed, s", 2),
    "describe": ("DescribeTrainingJob, a second", 0),
    "put": ("PutObject of 1 MB, a second", 0),
}


def main() -> None:
    """Measure and print."""
    measured: dict[str, dict[str, list[float]]] = {name: {} for name in COMMANDS}
    for number in range(ROUNDS):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                for row, value in measure(name, Path(folder) / "state").items():
                    measured[name].setdefault(row, []).append(value)
        print(f"round {number + 1}: measured", flush=True)
    report(measured)


def measure(name: str, state: Path) -> dict[str, float]:
    """Start a server, use it, end it; a value for each row of ROWS that it has."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    env = local_sagemaker.environment(state, port)

    def client(service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=env["AWS_ENDPOINT_URL"],
            region_name=env["AWS_DEFAULT_REGION"],
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"max_attempts": 0}, proxies={}),
        )

    api, s3, logs = client("sagemaker"), client("s3"), client("logs")
    command = [word.format(state=state) for word in COMMANDS[name]]
    began = time.perf_counter()
    with _process([sys.executable, *command, "--port", str(port)]) as server:
        _until_it_answers(api, server)
        values = {"start": time.perf_counter() - began}
        time.sleep(1)
        values["memory"] = _memory(server) / 1e6
        request = _request(s3)
        created, began = time.time(), time.perf_counter()
        api.create_training_job(**request)
        values["create"] = 1000 * (time.perf_counter() - began)
        job = request["TrainingJobName"]
        while (answer := api.describe_training_job(TrainingJobName=job))[
            "TrainingJobStatus"
        ] not in FINAL:
            time.sleep(0.05)
        values["job"] = time.perf_counter() - began
        assert answer["TrainingJobStatus"] == "Completed", answer["FailureReason"]
        printed = [line for _, line in local_sagemaker.JobEvents(logs, job).new()]
        times = [float(line.split()[2]) for line in printed if line.startswith("first line")]
        if times:
            values["first_line"] = min(times) - created
        body = os.urandom(1_000_000)
        values["describe"] = _rate(
            DESCRIPTIONS, lambda: api.describe_training_job(TrainingJobName=job)
        )
        values["put"] = _rate(PUTS, lambda: s3.put_object(Bucket=BUCKET, Key="body", Body=body))
    return values


@contextlib.contextmanager
def _process(command: list[str]) -> Iterator[psutil.Process]:
    """A server of its own, which is ended."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()


def _until_it_answers(api: Any, server: psutil.Process) -> None:
    while True:
        assert server.is_running() and server.status() != psutil.STATUS_ZOMBIE, "it has ended"
        with contextlib.suppress(BotoCoreError):
            api.list_training_jobs()
            return
        time.sleep(0.02)


def _memory(server: psutil.Process) -> int:
    """Bytes of the server and of what it has started; pages that several share are shared out."""
    processes = [server, *server.children(recursive=True)]
    return sum(process.memory_full_info().pss for process in processes)


def _rate(count: int, call: Any) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return count / (time.perf_counter() - began)


def _request(s3: Any) -> dict[str, Any]:
    """CreateTrainingJob's, as the SDK sends it: SCRIPT by torchrun on two instances."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(SCRIPT)
        archive.addfile(member, io.BytesIO(SCRIPT.encode()))
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="source.tar.gz", Body=packed.getvalue())
    return {
        "TrainingJobName": "two-instances",
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": ANY_IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
        "ResourceConfig": {
            "InstanceCount": 2,
            "InstanceType": "ml.m5.xlarge",
            "VolumeSizeInGB": 1,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": f'"s3://{BUCKET}/source.tar.gz"',
            "sagemaker_torch_distributed_enabled": "true",
        },
    }


def report(measured: dict[str, dict[str, list[float]]]) -> None:
    """Medians, and the range of the rounds in parentheses."""
    table = Table("", *measured, box=MARKDOWN)
    for row, (title, digits) in ROWS.items():
        cells = []
        for values in (rows.get(row, []) for rows in measured.values()):
            low, high = min(values, default=0), max(values, default=0)
            median = statistics.median(values) if values else 0
            words = f"{median:,.{digits}f} ({low:,.{digits}f} to {high:,.{digits}f})"
            cells.append(words if values else "nothing runs")
        table.add_row(title, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
