"""How long a job takes to reach its script, more than starting that script by hand.

The script prints the time as its first statement. By hand is `python script.py`, and
`mpirun -np N python -m mpi4py script.py` for MPI jobs: the same processes, on this machine
and without an endpoint.
"""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import boto3
from rich.console import Console
from rich.table import Table

from local_sagemaker import daemon

SCRIPT = "import time; print('FIRST', time.time(), flush=True)\n"
BUCKET = "bench"
BOUND_SECONDS = 2.0
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/bench"
POLL_SECONDS = 0.05


def run(runs: int) -> None:
    """Measure and print. runs: counted runs; one more goes before, uncounted."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        state = Path(folder) / "state"
        endpoint = daemon.start(state, 0)
        try:
            _measure(runs, Path(folder), daemon.environment(state, endpoint.port))
        finally:
            daemon.stop(state)


def _measure(runs: int, folder: Path, env: dict[str, str]) -> None:
    script = folder / "first.py"
    script.write_text(SCRIPT)
    clients = {name: _client(name, env) for name in ("s3", "sagemaker", "logs")}
    _upload(clients["s3"])
    mpirun = str(Path(sys.executable).parent / "mpirun")
    mpi = [mpirun, "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "-np", "2"]
    mpi += [sys.executable, "-m", "mpi4py"]
    rows = [("1 instance", 1, None, [sys.executable]), ("2 instances", 2, None, [sys.executable])]
    rows += [("2 instances, mpi", 2, 1, mpi)]
    table = Table(
        "job", "by hand, s", "as a job, s", "more, s", "ratio", f"bound {BOUND_SECONDS} s"
    )
    for name, count, per_host, command in rows:
        hand, job = [], []
        for number in range(runs + 1):  # in turn, so that a busy minute hits both
            hand.append(_by_hand([*command, str(script)]))
            job.append(_as_job(clients, f"bench-{count}-{per_host or 0}-{number}", count, per_host))
        a, b = statistics.median(hand[1:]), statistics.median(job[1:])
        verdict = "within" if b - a <= BOUND_SECONDS else "over"
        table.add_row(name, f"{a:.2f}", f"{b:.2f}", f"{b - a:.2f}", f"{b / a:.1f}", verdict)
    Console(width=100).print(table)
    print(f"medians of {runs}; with several processes, the last one's first line counts")


def _client(name: str, env: dict[str, str]):
    return boto3.client(
        name,
        endpoint_url=env["AWS_ENDPOINT_URL"],
        region_name=env["AWS_DEFAULT_REGION"],
        aws_access_key_id=env["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
    )


def _upload(s3) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("first.py")
        info.size = len(SCRIPT)
        tar.addfile(info, io.BytesIO(SCRIPT.encode()))
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="source.tar.gz", Body=buffer.getvalue())


def _by_hand(command: list[str]) -> float:
    begun = time.time()
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return max(_times(said.splitlines())) - begun


def _times(lines: list[str]) -> list[float]:
    return [float(line.split("FIRST ")[1]) for line in lines if "FIRST " in line]


def _as_job(clients: dict, name: str, count: int, per_host: int | None) -> float:
    hyperparameters = {"sagemaker_program": "first.py"}
    hyperparameters["sagemaker_submit_directory"] = f"s3://{BUCKET}/source.tar.gz"
    if per_host:
        hyperparameters["sagemaker_mpi_enabled"] = True
        hyperparameters["sagemaker_mpi_num_of_processes_per_host"] = per_host
    begun = time.time()
    clients["sagemaker"].create_training_job(
        TrainingJobName=name,
        RoleArn=ROLE,
        AlgorithmSpecification={
            "TrainingImage": "tensorflow-training",
            "TrainingInputMode": "File",
        },
        OutputDataConfig={"S3OutputPath": f"s3://{BUCKET}/out"},
        ResourceConfig={
            "InstanceCount": count,
            "InstanceType": "ml.m5.xlarge",
            "VolumeSizeInGB": 1,
        },
        StoppingCondition={"MaxRuntimeInSeconds": 120},
        HyperParameters={key: json.dumps(value) for key, value in hyperparameters.items()},
    )
    while True:
        told = clients["sagemaker"].describe_training_job(TrainingJobName=name)
        if told["TrainingJobStatus"] == "Completed":
            break
        if told["TrainingJobStatus"] != "InProgress":
            raise RuntimeError(f"{name}: {told.get('FailureReason')}")
        time.sleep(POLL_SECONDS)
    return max(_times(_log(clients["logs"], name))) - begun


def _log(logs, name: str) -> list[str]:
    group = "/aws/sagemaker/TrainingJobs"
    streams = logs.describe_log_streams(logGroupName=group, logStreamNamePrefix=f"{name}/")
    lines = []
    for stream in streams["logStreams"]:
        page = logs.get_log_events(
            logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
        )
        lines += [event["message"] for event in page["events"]]
    return lines
