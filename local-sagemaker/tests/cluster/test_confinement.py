"""What a job can do to the machine that it runs on, and to the emulator."""

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import uuid
from pathlib import Path

import psutil
import pytest
from emulator_harness import SCRIPTS, command_request, estimator, processes_with, start, until
from nobody_helpers import only_root, run_as_nobody

from local_sagemaker import daemon
from local_sagemaker.cluster import relay
from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.cluster.spec import JOB_ENV
from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session

# What README's table says: what works in an instance of namespaces, and what else in one that is a
# plain process.
INSIDE = {
    "reads the owner's files",
    "connects to a socket elsewhere",
    "reaches the emulator",
    "takes all cores",
    "writes into its own /etc",
    "writes to /tmp",
    "writes to /var/tmp",
    "writes to its temporary directory",
    "writes to its home",
    "leaves a process",  # until the job ends
}
AS_A_PROCESS = INSIDE - {"writes into its own /etc", "writes to its home"} | {
    "writes to the home directory",
    "lists the emulator's state",
    "reads the emulator's key",
    "connects to a socket in /tmp",
    "connects to a socket in /var/tmp",
    "connects to a service on loopback",
}


@contextlib.contextmanager
def listening(folder: str):
    """The path of a Unix socket that somebody listens on."""
    with tempfile.TemporaryDirectory(prefix="socket-of-a-test-", dir=folder) as inner:
        os.chmod(inner, 0o755)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{inner}/s")
            os.chmod(f"{inner}/s", 0o777)
            server.listen()
            yield f"{inner}/s"


@pytest.fixture
def targets(request):
    """What reach_out.py tries to reach, and nothing of it is left."""
    home = os.path.expanduser("~")
    name = f"written-by-a-test-{uuid.uuid4().hex}"
    with listening("/tmp") as first, listening("/var/tmp") as two, listening(home) as three:
        yield {
            "name": name,
            "home": f"{home}/{name}",
            "file": str(Path(__file__).parents[3] / "README.md"),
            "/tmp": first,
            "/var/tmp": two,
            "socket": three,
            "cores": os.cpu_count(),
            "sleep": f"4{uuid.uuid4().int % 10**9:09}",
        }
    for folder in (home, "/tmp", "/var/tmp"):
        Path(folder, name).unlink(missing_ok=True)


def left_running(targets: dict) -> bool:
    """Whether the process that reach_out.py leaves still runs. It is ended."""
    sleeps = ["sleep", targets["sleep"]]
    left = [item for item in psutil.process_iter(["cmdline"]) if item.info["cmdline"] == sleeps]
    for process in left:
        process.kill()
    return bool(left)


def tried(emulator, name: str, targets: dict, **extra) -> set[str]:
    """What worked of what the script reach_out.py tries."""
    targets |= {"state": str(emulator.state), "port": emulator.running.port, "inside": True}
    command = [sys.executable, str(SCRIPTS / "reach_out.py")]
    extra |= {"Environment": {"TARGETS": json.dumps(targets)}}
    emulator.client("sagemaker").create_training_job(**command_request(name, command, **extra))
    return worked(emulator.wait(name))


def worked(job) -> set[str]:
    assert job.status == "Completed", job.description.get("FailureReason")
    (result,) = job.lines("TRIED")
    return set(json.loads(result))


@pytest.mark.namespaces
def test_a_job_changes_nothing_but_its_own(emulator, targets):
    before = Path("/etc/environment").read_bytes() if Path("/etc/environment").exists() else None
    assert tried(emulator, "reaches-out", targets) == INSIDE
    after = Path("/etc/environment").read_bytes() if Path("/etc/environment").exists() else None
    assert before == after
    assert not left_running(targets)


@pytest.mark.namespaces
def test_an_isolated_job_does_not_reach_the_emulator(emulator, targets):
    result = tried(emulator, "isolated", targets, EnableNetworkIsolation=True)
    assert result == INSIDE - {"reaches the emulator"}


AS_NOBODY = """
import json, pathlib, pickle
from local_sagemaker.cluster.spec import ClusterSpec, Host
copy, state, port = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
folder = state / "jobs" / "nobodys" / "algo-1"
(folder / "ml").mkdir(parents=True)
(state / "credentials.json").touch()
os.environ["PIP_FIND_LINKS"] = f"https://example.invalid/ file://{json.loads(sys.argv[4])['file']}"
env = {"PATH": os.environ["PATH"], "TMPDIR": "/tmp", "HOME": "/run/home", "TARGETS": sys.argv[4]}
env["AWS_ENDPOINT_URL"] = "http://10.88.0.1:4566"
command = [sys.executable, str(copy / "reach_out.py")]
spec = ClusterSpec("nobodys", "namespaces", [Host("algo-1", str(folder), env)], command, port, 1.0,
                   prefix=str(copy))
(state / "cluster.pickle").write_bytes(pickle.dumps(spec))
told, tells = os.pipe()
os.dup2(told, 0)
os.set_inheritable(tells, True)
os.execv(sys.executable, [sys.executable, "-m", "local_sagemaker.cluster.supervisor",
                          str(state / "cluster.pickle")])
"""


@pytest.mark.namespaces
@only_root
def test_nor_does_an_ordinary_users_job(emulator, targets, tmp_path):
    """Its code, its packages and its state are in /tmp, as some keep them."""
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    port, wheel = emulator.running.port, tmp_path / "a.whl"
    wheel.touch()
    targets |= {"state": str(state), "port": port, "inside": True, "file": str(wheel)}
    targets |= {"socket": targets["/tmp"]}  # those in root's home are closed to others
    done = run_as_nobody(
        AS_NOBODY,
        tmp_path,
        str(state),
        str(port),
        json.dumps(targets),
        files=[SCRIPTS / "reach_out.py"],
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    lines = [line for event in events if event["event"] == "log" for line in event["lines"]]
    (result,) = (line.removeprefix("TRIED ") for line in lines if line.startswith("TRIED"))
    assert set(json.loads(result)) == INSIDE - {"connects to a socket elsewhere"}, done.stderr
    assert not left_running(targets)


def test_what_a_plain_process_does(other, targets, monkeypatch):
    targets |= {"state": str(other.state), "port": other.running.port, "inside": False}
    other.client("s3").create_bucket(Bucket=BUCKET)
    environment = {"TARGETS": json.dumps(targets)}
    body = estimator(
        sdk_session(other, monkeypatch), "reach_out.py", instance_count=1, environment=environment
    )
    assert worked(other.wait(start(body, None))) == AS_A_PROCESS
    assert not left_running(targets)  # though it has cleared its environment


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
def test_what_a_job_leaves_behind_leads_nowhere_else(emulator):
    s3, key = emulator.client("s3"), emulator.env["AWS_SECRET_ACCESS_KEY"]
    to = {"S3OutputPath": f"s3://{BUCKET}/links", "CompressionType": "NONE"}
    body = command_request(
        "leaves-links",
        ["/bin/sh", "-c", "; ".join(LINKS.split("\n")[1:-1])],
        OutputDataConfig=to,
        CheckpointConfig={"S3Uri": f"s3://{BUCKET}/links"},
        Environment={"STATE": str(emulator.state)},
    )
    emulator.client("sagemaker").create_training_job(**body)
    job = emulator.wait("leaves-links")
    assert "see job logs" in job.description["FailureReason"]
    assert key not in str(job.description)
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="links").get("Contents", []) == []
    message = [line for line in job.lines("[local]") if line.startswith("not copied to S3")]
    assert len(message) == 1
    for place in ("checkpoints", "model/key", "output/data"):
        assert f"/opt/ml/{place}" in message[0]


@pytest.mark.parametrize(
    ("target", "reached"),
    [
        ("151.101.0.223:443", True),
        ("198.18.0.7:443", True),
        ("151.101.0.223:22", False),
        ("10.0.0.1:443", False),
        ("100.64.0.1:443", False),
        ("[::ffff:192.168.0.1]:443", False),
        ("[fc00::1]:443", False),
        ("169.254.169.254:80", False),
        ("0x7f.1:443", False),
        ("224.0.0.1:443", False),
        ("10.0.0.5:8443", True),  # it is pip's index, by a variable
        ("10.0.0.6:443", True),  # by a file
        ("not a name:443", None),
        ("151.101.0.223:x", None),
    ],
)
def test_the_proxy_leads_to_the_internets_web_and_to_pips_index(
    monkeypatch, tmp_path, target, reached
):
    connected: list[tuple] = []

    class Connecting(socket.socket):
        def connect(self, address):
            connected.append(address)

    (tmp_path / "pip.conf").write_text("[global]\nextra-index-url = https://10.0.0.6/simple\n")
    monkeypatch.setattr(relay, "PIP_FILES", [tmp_path / "pip.conf"])
    monkeypatch.setenv("PIP_INDEX_URL", "https://10.0.0.5:8443/simple")
    monkeypatch.setattr(relay.socket, "socket", Connecting)
    job, ours = socket.socketpair()
    job.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
    with contextlib.suppress(OSError, ValueError):
        relay._to_proxied(ours).close()
    ours.close()
    assert bool(connected) == bool(reached)
    output = job.recv(100)
    assert output.startswith({True: b"HTTP/1.1 200", False: b"HTTP/1.1 403", None: b""}[reached])


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """Another emulator beside the usual one; the last test here kills it."""
    emulator = Emulator(
        tmp_path_factory.mktemp("other"), ["--grace", "1", "--isolation", "processes"]
    )
    yield emulator
    emulator.down()


def test_two_emulators_leave_each_others_work_alone(emulator, other):
    """Both have a job of the same name."""
    ours, theirs = emulator.aws.mark("same-name"), other.aws.mark("same-name")
    assert ours != theirs
    env = {"PATH": os.environ["PATH"], JOB_ENV: theirs}
    pid = os.spawnvpe(os.P_NOWAIT, "sleep", ["sleep", "600"], env)
    try:
        until(lambda: processes_with(theirs))  # until then it has not become `sleep`
        assert kill_orphans(ours) == 0
        assert kill_orphans(theirs) == 1
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # psutil has waited for it
            os.waitpid(pid, 0)


def test_an_emulator_that_hangs_is_killed(other, monkeypatch):
    monkeypatch.setattr(daemon, "STOP_SECONDS", 1)
    os.kill(other.running.pid, signal.SIGSTOP)
    assert daemon.stop(other.state) is True
    assert daemon.running(other.state) is None
