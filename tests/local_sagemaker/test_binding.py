"""Loopback only; and nobody asks AWS, neither a client nor the endpoint nor a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from endpoint_harness import BUCKET, ROLE, SCRIPTS, Endpoint
from local_sagemaker import daemon

AUDIT = Path(__file__).parent / "audit"
REPOSITORY = Path(__file__).parent.parent.parent


def listening(pid: int) -> set[str]:
    found = psutil.Process(pid).net_connections("inet")
    return {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}


def test_it_listens_on_loopback_alone(endpoint):
    assert listening(endpoint.running.pid) == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.7", "::"])
def test_another_host_is_refused(tmp_path, host):
    with pytest.raises(daemon.DaemonError, match=f"--host {host}: "):
        daemon.checked_host(host, told_twice=False)
    with pytest.raises(daemon.DaemonError, match=r"binds to 127\.0\.0\.1 or"):
        daemon.checked_host("192.0.2.7", told_twice=True)


def test_the_endpoint_itself_refuses_too(tmp_path):
    """Whoever starts it without the command `workshop` is asked twice as well."""
    with pytest.raises(daemon.DaemonError, match="can run programs as you"):
        daemon.start(tmp_path / "state", 0, ["--host", "0.0.0.0"])


def test_told_twice_it_binds(tmp_path):
    options = ["--host", "0.0.0.0", "--i-know-this-is-not-safe", "--isolation", "processes"]
    one = Endpoint(tmp_path / "state", options)
    try:
        assert listening(one.running.pid) == {"0.0.0.0"}
        assert one.running.url.startswith("http://127.0.0.1:")
    finally:
        one.down()


CLIENT = f"""
import boto3, json, sagemaker, sys
from sagemaker.tensorflow import TensorFlow

boto3.client("s3").create_bucket(Bucket={BUCKET!r})
session = sagemaker.Session()
uri = session.upload_data(sys.argv[1], key_prefix="data")
one = TensorFlow(entry_point="phone_home.py", source_dir={str(SCRIPTS)!r}, role={ROLE!r},
    instance_count=1, instance_type="ml.m5.xlarge", framework_version="2.12", py_version="py310",
    sagemaker_session=session, environment=json.loads(sys.argv[2]))
one.fit({{"training": uri}}, wait=False)
name = one.latest_training_job.name
told = session.describe_training_job(name)
again = TensorFlow.attach(name, sagemaker_session=session)
print("DONE", name, told["TrainingJobStatus"], session.default_bucket())
boto3.client("s3").list_buckets()
boto3.client("sts").get_caller_identity()
"""


def audited(path: Path) -> dict[str, str]:
    """Variables that make a Python note its connections in `path`, and refuse those that lead
    elsewhere."""
    return {"PYTHONPATH": os.pathsep.join([str(AUDIT), str(REPOSITORY)]), "AUDIT_FILE": str(path)}


def hosts(path: Path) -> set[str]:
    """The hosts of everything noted."""
    return {line.split()[1] for line in path.read_text().splitlines()}


def test_endpoint_and_job_ask_nobody_else(tmp_path, monkeypatch, request):
    """Nor does the SDK: a whole session of it, its job and its endpoint, every connection noted."""
    for name, value in audited(tmp_path / "endpoint.log").items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(daemon, "_endpoint_environment", lambda: dict(os.environ))
    endpoint = Endpoint(tmp_path / "state")
    request.addfinalizer(endpoint.down)
    (tmp_path / "data.txt").write_text("x")
    # An instance writes to none of this machine's files; what it says is in the job's log.
    job_variables = {"PYTHONPATH": str(AUDIT), "AUDIT_FILE": "/dev/stderr"}
    client = subprocess.run(
        [sys.executable, "-c", CLIENT, str(tmp_path / "data.txt"), json.dumps(job_variables)],
        env=os.environ | endpoint.env | audited(tmp_path / "client.log") | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=240,
    )
    assert client.returncode == 0, client.stderr
    done = next(line for line in client.stdout.splitlines() if line.startswith("DONE")).split()
    assert done[3] == "sagemaker-us-east-1-local"
    job = endpoint.wait(done[1])
    assert job.status == "Completed", job.description.get("FailureReason")
    assert endpoint.get(f"s3://{BUCKET}/phoned") == b"home"
    assert len(job.lines("ACCOUNT")) == 1
    assert len(job.lines("REFUSED")) == 1  # what leads elsewhere is noticed
    assert hosts(tmp_path / "client.log") == {"127.0.0.1"}
    # Its own name is looked up by the toolkit, and its gateway leads to the endpoint.
    said = {line.split()[1] for lines in job.log.values() for line in lines if "socket." in line}
    assert "192.0.2.1" in said
    assert said <= {"127.0.0.1", "10.88.0.1", "algo-1", "192.0.2.1"}
    assert hosts(tmp_path / "endpoint.log") <= {"127.0.0.1"}
