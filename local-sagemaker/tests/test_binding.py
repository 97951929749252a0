"""Loopback only; and nobody asks AWS, neither a client nor the emulator nor a job."""

import json
import os
import sys
from pathlib import Path

import psutil
from emulator_harness import captured

import local_sagemaker
from local_sagemaker import daemon
from local_sagemaker.pytest_plugin import Emulator

AUDIT = Path(__file__).parent / "audit"
PACKAGES = Path(local_sagemaker.__file__).parents[1]


def test_it_listens_on_loopback_alone(emulator):
    ends = psutil.Process(emulator.running.pid).net_connections("inet")
    assert {end.laddr.ip for end in ends if end.status == psutil.CONN_LISTEN} == {"127.0.0.1"}


SCRIPT = """
import os, socket
import boto3

files = os.listdir(os.environ["SM_CHANNEL_TRAINING"])
print("HELLO of", os.environ["SM_CURRENT_HOST"], "with", files)
print("loss: 0.5")
if os.environ["SM_CURRENT_HOST"] == "algo-1":
    open(os.path.join(os.environ["SM_MODEL_DIR"], "weights.json"), "w").write("[1, 2]")
print("ACCOUNT", boto3.client("sts").get_caller_identity()["Account"])
try:
    socket.create_connection(("192.0.2.1", 80), timeout=2)
except OSError as error:
    print("REFUSED", error)
"""

CLIENT = """
import io, json, sys, tarfile, time, types
import boto3, sagemaker, sagemaker.session
from sagemaker.tensorflow import TensorFlow

# The SDK asks every 30 s whether a job has ended. Here its clock runs thirty times as fast.
sagemaker.session.time = types.SimpleNamespace(
    time=lambda: 30 * time.time(), sleep=lambda seconds: time.sleep(seconds / 30)
)
session = sagemaker.Session()
inputs = {"training": session.upload_data("numbers.csv", key_prefix="numbers")}
estimator = TensorFlow(
    entry_point="my_script.py",
    role="arn:aws:iam::" + "0" * 12 + ":role/learner",
    instance_count=2,
    instance_type="ml.m5.xlarge",
    framework_version="2.12",
    py_version="py310",
    sagemaker_session=session,
    metric_definitions=[{"Name": "loss", "Regex": "loss: ([0-9.]+)"}],
    environment=json.loads(sys.argv[1]),
    hyperparameters={"epochs": 3},
)
estimator.fit(inputs)
bucket, key = estimator.model_data.removeprefix("s3://").split("/", 1)
body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
print("MODEL", bucket, tarfile.open(fileobj=io.BytesIO(body)).getnames())
again = TensorFlow.attach(estimator.latest_training_job.name, sagemaker_session=session)
assert again.model_data == estimator.model_data and again.hyperparameters()["epochs"] == "3"
"""


def hosts(noted: str) -> set[str]:
    """The hosts of the connections and look-ups that the audit noted."""
    return {line.split()[1] for line in noted.splitlines() if line.startswith("socket.")}


def test_emulator_and_job_ask_nobody_else(tmp_path, monkeypatch, request):
    """Nor does a client that knows nothing of this kit: the variables, the plain SDK, its own
    script. Every connection is noted, and refused if it leads elsewhere."""
    noted = {"PYTHONPATH": f"{AUDIT}{os.pathsep}{PACKAGES}", "AUDIT_FILE": f"{tmp_path}/emulator"}
    monkeypatch.setattr(daemon, "_emulator_environment", lambda: os.environ | noted)
    emulator = Emulator(tmp_path / "state")
    request.addfinalizer(emulator.down)
    (tmp_path / "my_script.py").write_text(SCRIPT)
    (tmp_path / "numbers.csv").write_text("1,2\n")
    # An instance writes to none of this machine's files; what it says is in the job's log.
    in_job = json.dumps({"PYTHONPATH": str(AUDIT), "AUDIT_FILE": "/dev/stderr"})
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env |= {"PYTHONPATH": str(AUDIT), "AUDIT_FILE": f"{tmp_path}/client", "HOME": str(tmp_path)}
    command = [sys.executable, "-c", CLIENT, in_job]
    client = captured(command, env=env | emulator.env, cwd=tmp_path, timeout=240)
    assert client.returncode == 0, client.stderr
    for host in ("algo-1", "algo-2"):
        assert f"HELLO of {host} with ['numbers.csv']" in client.stdout
    assert "MODEL sagemaker-us-east-1-local ['weights.json']" in client.stdout
    assert "Training seconds:" in client.stdout
    assert hosts((tmp_path / "client").read_text()) == {"127.0.0.1"}
    assert hosts((tmp_path / "emulator").read_text()) <= {"127.0.0.1"}
    (summary,) = emulator.client("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    job = emulator.wait(summary["TrainingJobName"])
    assert len(job.lines("ACCOUNT")) == len(job.lines("REFUSED")) == 2
    # Instances' names are looked up by the toolkit, and the gateway leads to the emulator.
    looked_up = hosts("\n".join(line for lines in job.log.values() for line in lines))
    assert "192.0.2.1" in looked_up
    assert looked_up <= {"127.0.0.1", "10.88.0.1", "algo-1", "algo-2", "192.0.2.1"}
