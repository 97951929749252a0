"""Loopback only; and nobody asks AWS, neither a client nor the endpoint nor a job."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from endpoint_harness import BUCKET, ROLE, SCRIPTS, Endpoint, estimator, start
from local_sagemaker import daemon

AUDIT = Path(__file__).parent / "audit"
REPOSITORY = Path(__file__).parent.parent.parent


def listening(pid: int) -> set[str]:
    found = psutil.Process(pid).net_connections("inet")
    return {one.laddr.ip for one in found if one.status == psutil.CONN_LISTEN}


def workshop(state: Path, *arguments: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "workshop.cli", *arguments],
        env={**os.environ, "WORKSHOP_STATE_DIR": str(state)},
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=120,
    )


def test_it_listens_on_loopback_alone(endpoint):
    assert listening(endpoint.running.pid) == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "", "192.0.2.7", "::"])
def test_another_host_is_refused(tmp_path, host):
    done = workshop(tmp_path / "state", "up", "--port", "0", "--host", host)
    assert not daemon.stop(tmp_path / "state")
    assert done.returncode != 0
    assert f"--host {host}" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_endpoint_itself_refuses_too(tmp_path):
    """Whoever starts it without the command `workshop` is asked twice as well."""
    with pytest.raises(daemon.DaemonError, match="can run programs as you"):
        daemon.start(tmp_path / "state", 0, ["--host", "0.0.0.0"])


def test_told_twice_it_binds(tmp_path):
    state, options = tmp_path / "state", ["--host", "0.0.0.0", "--i-know-this-is-not-safe"]
    try:
        done = workshop(state, "up", "--port", "0", "--isolation", "processes", *options)
        assert done.returncode == 0, done.stderr
        found = daemon.running(state)
        assert listening(found.pid) == {"0.0.0.0"}
        assert found.url.startswith("http://127.0.0.1:")
    finally:
        daemon.stop(state)


CLIENT = f"""
import boto3, sagemaker, sys
from sagemaker.tensorflow import TensorFlow

session = sagemaker.Session()
uri = session.upload_data(sys.argv[1], key_prefix="data")
one = TensorFlow(entry_point="show.py", source_dir={str(SCRIPTS)!r}, role={ROLE!r},
    instance_count=1, instance_type="ml.m5.xlarge", framework_version="2.12", py_version="py310",
    sagemaker_session=session)
one.fit({{"training": uri}}, wait=False)
name = one.latest_training_job.name
told = session.describe_training_job(name)
again = TensorFlow.attach(name, sagemaker_session=session)
print("DONE", name, told["TrainingJobStatus"], session.default_bucket())
boto3.client("s3").list_buckets()
boto3.client("sts").get_caller_identity()
"""


def audited(path: Path, **more: str) -> dict[str, str]:
    """Variables that make a Python note its connections in `path`."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    folders = os.pathsep.join([str(AUDIT), str(REPOSITORY)])
    return {**base, "PYTHONPATH": folders, "AUDIT_FILE": str(path), **more}


def targets(path: Path) -> set[tuple[str, str]]:
    """(host, port) of everything noted."""
    return {tuple(line.split()[1:3]) for line in path.read_text().splitlines()}


def test_a_whole_session_of_the_sdk_asks_nobody_else(endpoint, tmp_path):
    (tmp_path / "data.txt").write_text("x")
    log = tmp_path / "audit.log"
    client = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(tmp_path / "data.txt")],
        env=audited(log, HOME=str(tmp_path), **endpoint.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    said, errors = client.communicate(timeout=240)
    assert client.returncode == 0, errors
    done = next(line for line in said.splitlines() if line.startswith("DONE")).split()
    assert done[3] == "sagemaker-us-east-1-local"
    assert targets(log) == {("127.0.0.1", str(endpoint.running.port))}
    assert endpoint.wait(done[1]).status == "Completed"


def test_the_audit_would_notice(tmp_path):
    code = "import socket; socket.create_connection(('sts.us-east-1.amazonaws.com', 443))"
    log = tmp_path / "audit.log"
    done = subprocess.run(
        [sys.executable, "-c", code], env=audited(log), capture_output=True, text=True, timeout=60
    )
    assert "the test allows no connection to sts.us-east-1.amazonaws.com" in done.stderr
    assert targets(log) == {("sts.us-east-1.amazonaws.com", "443")}


@pytest.fixture
def watched(tmp_path):
    """An endpoint whose every connection is noted."""
    one = Endpoint.__new__(Endpoint)
    one.state, one.audit = tmp_path / "state", tmp_path / "endpoint.log"
    one.state.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "local_sagemaker", "--state", str(one.state), "--grace", "3"],
        env=audited(one.audit),
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while (found := daemon.running(one.state)) is None:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    one.running, one.env = found, daemon.environment(one.state, found.port)
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("data/part-0.txt", "x")
    yield one
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    process.stderr.close()


def test_endpoint_and_job_ask_nobody_else(watched, tmp_path, monkeypatch):
    for name, value in watched.env.items():
        monkeypatch.setenv(name, value)
    import sagemaker

    log = tmp_path / "job.log"
    log.touch()
    variables = {"PYTHONPATH": str(AUDIT), "AUDIT_FILE": str(log)}
    session = sagemaker.Session(default_bucket=BUCKET)
    one = estimator(session, "phone_home.py", instance_count=1, environment=variables)
    job = watched.wait(start(one))
    assert job.status == "Completed", job.description.get("FailureReason")
    assert watched.get(f"s3://{BUCKET}/phoned") == b"home"
    assert len(job.lines("ACCOUNT")) == 1
    assert len(job.lines("REFUSED")) == 1
    # Its own name is looked up by the toolkit, and its gateway leads to the endpoint.
    assert {host for host, _ in targets(log)} <= {"127.0.0.1", "10.88.0.1", "algo-1", "192.0.2.1"}
    assert {host for host, _ in targets(watched.audit)} <= {"127.0.0.1"}
