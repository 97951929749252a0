"""local-sagemaker beside moto's server: start, memory, a job on two instances, requests a second.

    python -m tools.beside_moto

moto computes nothing: it says at once that a job is completed. What else README.md of
local-sagemaker compares needs Docker.
"""

from __future__ import annotations

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from botocore.exceptions import BotoCoreError
from rich.box import MARKDOWN
from rich.console import Console
from rich.table import Table

import local_sagemaker
from local_sagemaker.pytest_plugin import ANY_IMAGE, BUCKET, FINAL, estimator, sdk_session, start
from workshop.launch.processes import free_port

COMMANDS = {
    "local-sagemaker": ["-m", "local_sagemaker", "start", "--foreground", "--state", "{state}"],
    "moto": ["-m", "moto.server"],
}
ROUNDS, DESCRIPTIONS, PUTS = 5, 200, 50
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
    """Measure in rounds; print medians, and the range of the rounds in parentheses."""
    measured: dict[str, list[dict[str, float]]] = {name: [] for name in COMMANDS}
    for number in range(ROUNDS):
        for name in random.sample(list(COMMANDS), len(COMMANDS)):
            measured[name].append(measure(COMMANDS[name]))
        print(f"round {number + 1}: measured", flush=True)
    table = Table("", *measured, box=MARKDOWN)
    for row, (title, digits) in ROWS.items():
        cells = []
        for rounds in measured.values():
            values = [values[row] for values in rounds if row in values] or [float("nan")]
            shown = (f"{f(values):,.{digits}f}" for f in (statistics.median, min, max))
            cells.append("{} ({} to {})".format(*shown))
        table.add_row(title, *cells)
    Console(width=100).print(table)


def measure(words: list[str]) -> dict[str, float]:
    """Start a server, use it, end it; a value for each row of ROWS that it has."""
    port = free_port()
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        state = Path(folder) / "state"
        patch.setenv("AWS_MAX_ATTEMPTS", "1")  # its own pauses would count
        env = local_sagemaker.environment(state, port)
        emulator: Any = SimpleNamespace(env=env)  # or moto's server
        session = sdk_session(emulator, patch)
        command = [sys.executable, *(word.format(state=state) for word in words)]
        began = time.perf_counter()
        with subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as server:
            try:
                _until_it_answers(session.sagemaker_client, server)
                return {"start": time.perf_counter() - began} | _use(session, server, Path(folder))
            finally:
                server.terminate()


def _until_it_answers(api, server: subprocess.Popen) -> None:
    while server.poll() is None:
        try:
            api.list_training_jobs()
            return
        except BotoCoreError:
            time.sleep(0.02)
    raise RuntimeError(f"It ended with status {server.returncode}.")


def _use(session, server: subprocess.Popen, folder: Path) -> dict[str, float]:
    """What a running server takes: its memory, and the seconds of a job and of requests."""
    api, s3, logs = (session.boto_session.client(name) for name in ("sagemaker", "s3", "logs"))
    time.sleep(1)
    values = {"memory": _memory(server) / 1e6}
    s3.create_bucket(Bucket=BUCKET)
    (folder / "train.py").write_text(SCRIPT)
    torchrun: dict[str, Any] = {
        "distribution": {"torch_distributed": {"enabled": True}},
        "image_uri": ANY_IMAGE,
    }
    times = {}
    events = session.sagemaker_client.meta.events
    for when in ("before-call", "after-call"):
        events.register(
            f"{when}.sagemaker.CreateTrainingJob",
            lambda when=when, **_: times.update({when: time.time()}),
        )
    job = {"TrainingJobName": start(estimator(session, folder / "train.py", **torchrun))}
    while (answer := api.describe_training_job(**job))["TrainingJobStatus"] not in FINAL:
        time.sleep(0.05)
    values["job"] = time.time() - times["before-call"]
    if answer["TrainingJobStatus"] != "Completed":
        raise RuntimeError(answer["FailureReason"])
    values["create"] = 1000 * (times["after-call"] - times["before-call"])
    printed = [line for _, line in local_sagemaker.JobEvents(logs, *job.values()).new()]
    if lines := [line.split()[2] for line in printed if line.startswith("first line")]:
        values["first_line"] = min(map(float, lines)) - times["before-call"]
    body = os.urandom(1_000_000)
    values["describe"] = _rate(DESCRIPTIONS, lambda: api.describe_training_job(**job))
    values["put"] = _rate(PUTS, lambda: s3.put_object(Bucket=BUCKET, Key="body", Body=body))
    return values


def _memory(server: subprocess.Popen) -> int:
    """Bytes of the server and of what it has started; pages that several share are shared out."""
    process = psutil.Process(server.pid)
    processes = [process, *process.children(recursive=True)]
    return sum(each.memory_full_info().pss for each in processes)


def _rate(count: int, call: Callable[[], object]) -> float:
    began = time.perf_counter()
    for _ in range(count):
        call()
    return count / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
