"""What a job can do to the machine that it runs on, and to the endpoint."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, SCRIPTS, Endpoint, command_request, processes_with, request
from local_sagemaker import daemon
from local_sagemaker.cluster import processes
from local_sagemaker.cluster.spec import PROCESSES, ClusterSpec, Host
from local_sagemaker.jobs import training

HARMLESS = {
    "writes into its own /etc",
    "writes to its temporary directory",
    "writes to its home",
    "reaches the endpoint",
}


def tried(endpoint, name: str, **more) -> set[str]:
    """What worked of what the script reach_out.py tries."""
    home = os.path.expanduser("~")
    targets = {"home": home, "state": str(endpoint.state), "port": endpoint.running.port}
    command = [sys.executable, str(SCRIPTS / "reach_out.py")]
    more |= {"Environment": {"TARGETS": json.dumps(targets)}}
    endpoint.client("sagemaker").create_training_job(**command_request(name, command, **more))
    job = endpoint.wait(name)
    assert job.status == "Completed", job.description.get("FailureReason")
    (found,) = job.lines("TRIED")
    return {name for name, worked in json.loads(found).items() if worked}


@pytest.mark.namespaces
def test_a_job_changes_nothing_but_its_own(endpoint):
    before = Path("/etc/environment").read_bytes() if Path("/etc/environment").exists() else None
    assert tried(endpoint, "reaches-out") == HARMLESS
    after = Path("/etc/environment").read_bytes() if Path("/etc/environment").exists() else None
    assert before == after


@pytest.mark.namespaces
def test_an_isolated_job_does_not_reach_the_endpoint(endpoint):
    found = tried(endpoint, "isolated", EnableNetworkIsolation=True)
    assert found == HARMLESS - {"reaches the endpoint"}


LINKS = """
cd /opt/ml
rmdir output/data checkpoints
ln -s $STATE/moto output/data
ln -s $STATE checkpoints
ln -s $STATE/credentials.json model/key
ln -s $STATE/credentials.json output/failure
exit 1
"""


@pytest.mark.namespaces
def test_what_a_job_leaves_behind_leads_nowhere_else(endpoint):
    s3, key = endpoint.client("s3"), endpoint.env["AWS_SECRET_ACCESS_KEY"]
    to = {"S3OutputPath": f"s3://{BUCKET}/links", "CompressionType": "NONE"}
    body = command_request(
        "leaves-links",
        ["/bin/sh", "-c", "; ".join(LINKS.split("\n")[1:-1])],
        OutputDataConfig=to,
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/links"},
        Environment={"STATE": str(endpoint.state)},
    )
    endpoint.client("sagemaker").create_training_job(**body)
    job = endpoint.wait("leaves-links")
    assert "see job logs" in job.description["FailureReason"]
    assert key not in str(job.description)
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="links").get("Contents", []) == []
    said = [line for line in job.lines("[local]") if line.startswith("not copied to S3")]
    assert len(said) == 1
    for place in ("checkpoints", "model/key", "output/data"):
        assert f"/opt/ml/{place}" in said[0]


STEALS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
supervisor = os.getppid()
pipes = f"/proc/{supervisor}/fd/"
with open(pipes + "1", "w") as events:
    events.write('no JSON\\n["event"]\\n{}\\n' + "[" * 100_000 + "\\n")
print("STEALS", flush=True)
time.sleep(0.5)
os.kill(supervisor, signal.SIGSTOP)
with open(pipes + "0", "rb", buffering=0) as told:
    told.read(100)
os.kill(supervisor, signal.SIGCONT)
time.sleep(600)
"""


def test_a_plain_process_that_takes_the_supervisors_pipes_is_stopped_all_the_same(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(training, "OVERDUE_SECONDS", 0.5)
    lines, begun = [], threading.Event()

    def write(host: str, time_ms: int, new: list[str]) -> None:
        lines.extend(new)
        begun.set()

    env = {processes.MARK: str(tmp_path), "LOCAL_SAGEMAKER_HOST": "algo-1"}
    hosts = [Host("algo-1", str(tmp_path), env)]
    command = [sys.executable, "-c", STEALS]
    spec = ClusterSpec("steals", PROCESSES, hosts, command, 9, 0.5, sys.prefix)
    job = training.Training(spec, tmp_path, SimpleNamespace(write=write))
    waits = threading.Thread(target=job.run, args=([],), daemon=True)
    waits.start()
    assert begun.wait(60)
    time.sleep(1.5)
    job.stop()
    waits.join(30)
    assert not waits.is_alive() and lines == ["STEALS"]


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another endpoint beside the usual one; the last test here kills it."""
    one = Endpoint(tmp_path_factory.mktemp("other"), ["--grace", "1", "--max-instances", "3"])
    yield one
    one.down()


def test_more_instances_than_the_limit(other):
    body = request("first")
    body["ResourceConfig"]["InstanceCount"] = 4
    with pytest.raises(ClientError) as caught:
        other.client("sagemaker").create_training_job(**body)
    told = caught.value.response["Error"]
    assert told["Code"] == "ResourceLimitExceeded"
    limit = "is 3 Instances, with current utilization of 0 Instances and a request delta of 4"
    assert limit in told["Message"] and "--max-instances" in told["Message"]


def test_two_endpoints_leave_each_others_work_alone(endpoint, other):
    """Both have a job of the same name."""
    ours, theirs = endpoint.aws().mark("same-name"), other.aws().mark("same-name")
    assert ours != theirs
    env = {"PATH": os.environ["PATH"], processes.MARK: theirs}
    pid = os.spawnvpe(os.P_NOWAIT, "sleep", ["sleep", "600"], env)
    try:
        deadline = time.monotonic() + 60
        while not processes_with(theirs):  # it has not become `sleep` yet
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert processes.kill_strays(ours) == 0
        assert processes.kill_strays(theirs) == 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # psutil has waited for it
            os.waitpid(pid, 0)


def test_an_endpoint_that_hangs_is_killed(other, monkeypatch):
    monkeypatch.setattr(daemon, "STOP_SECONDS", 1)
    os.kill(other.running.pid, signal.SIGSTOP)
    assert daemon.stop(other.state) is True
    assert daemon.running(other.state) is None
