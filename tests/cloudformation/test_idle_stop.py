"""idle_stop.py of the notebook instance: what counts as use, by a clock of the test's own."""

import datetime
import fcntl
import json
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import boto3
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from emulator_harness import until
from moto import mock_aws
from script_harness import module

from workshop.launch.processes import free_port
from workshop.paths import CLOUDFORMATION

BEGAN = 1_795_255_200.0  # 2026-11-21T10:00:00Z
LIMIT = 60 * 60


@pytest.fixture
def program():
    """The script as a module."""
    return module("idle_stop.py", CLOUDFORMATION / "notebook")


@pytest.fixture
def run(program, monkeypatch):
    """Runs the program with a Jupyter that answers as `jupyter(path, seconds)`; until it stops.

    Returns after how many seconds of its clock it has stopped the instance.
    """

    def run(jupyter, stop=lambda metadata: None, working=""):
        clock = SimpleNamespace(now=BEGAN)

        def sleep(seconds):
            clock.now += seconds
            assert clock.now < BEGAN + 100 * LIMIT, "it never stops"

        def ask(address):
            return jupyter(address.partition("/api/")[2], clock.now - BEGAN)

        monkeypatch.setattr(program, "time", SimpleNamespace(time=lambda: clock.now, sleep=sleep))
        monkeypatch.setattr(program, "ask", ask)
        monkeypatch.setattr(program, "stop", stop)
        monkeypatch.setattr(sys, "argv", ["idle_stop", "--minutes=60", f"--working={working}"])
        program.main()
        return clock.now - BEGAN

    return run


def moment(seconds):
    """A time of Jupyter's."""
    at = datetime.datetime.fromtimestamp(BEGAN + seconds, datetime.UTC)
    return at.isoformat().replace("+00:00", "Z")


def kernel(state, used):
    return {"id": "k", "execution_state": state, "last_activity": moment(used), "connections": 1}


def test_an_unused_instance_is_stopped(run):
    """A fresh start is use. A kernel that nobody connects to starts for ever, and is none."""
    kernels = [kernel(state, -3600) for state in ("idle", "starting", "dead")]
    assert run(lambda path, now: kernels if path == "kernels" else []) == LIMIT


USES = {
    "a kernel runs a cell": lambda now: {"kernels": [kernel("busy", -99), kernel("idle", -9)]},
    "a kernel ran a cell": lambda now: {"kernels": [kernel("idle", now), kernel("idle", -99)]},
    "a terminal": lambda now: {"terminals": [{"name": "1", "last_activity": moment(now + 0.5)}]},
}


@pytest.mark.parametrize("use", USES)
def test_an_instance_in_use_is_not_stopped_until_the_use_ends(run, use):
    def jupyter(path, now):
        return USES[use](min(now, 3 * LIMIT)).get(path, []) if now <= 3 * LIMIT else []

    assert run(jupyter) == pytest.approx(4 * LIMIT, abs=60)


def test_a_jupyter_that_does_not_answer_does_not_keep_it_alive(run, capsys):
    assert run(mock.Mock(side_effect=OSError("refused"))) == LIMIT
    assert "Jupyter does not answer: refused" in capsys.readouterr().out


def test_a_refused_stop_is_tried_again(run, capsys):
    stop = mock.Mock(side_effect=[RuntimeError("denied"), RuntimeError("denied"), None])
    assert run(lambda path, now: [], stop) == LIMIT + 2 * 60
    out = capsys.readouterr().out
    assert out.count("Cannot stop this instance: denied") == 2
    assert out.endswith("Told SageMaker to stop this instance.\n")


def test_the_set_up_is_use_as_long_as_it_holds_its_lock(run, tmp_path):
    lock = tmp_path / "lock"
    with lock.open("w") as original:
        fcntl.flock(original, fcntl.LOCK_EX)

        def jupyter(path, now):
            if now > 3 * LIMIT:
                fcntl.flock(original, fcntl.LOCK_UN)
            return []

        assert run(jupyter, working=str(lock)) == pytest.approx(4 * LIMIT, abs=120)


def test_sagemaker_is_told_to_stop_the_instance_of_the_metadata(program, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client, name = boto3.client("sagemaker"), {"NotebookInstanceName": "workshop-idle"}
        role = "arn:aws:iam::123456789012:role/any"
        client.create_notebook_instance(InstanceType="ml.t3.medium", RoleArn=role, **name)
        arn = client.describe_notebook_instance(**name)["NotebookInstanceArn"]
        metadata = tmp_path / "resource-metadata.json"
        metadata.write_text(json.dumps({"ResourceArn": arn, "ResourceName": "workshop-idle"}))
        program.stop(metadata)
        assert client.describe_notebook_instance(**name)["NotebookInstanceStatus"] == "Stopped"


@pytest.mark.parametrize("text", ["2026-11-21T10:00:00.500000Z", "2026-11-21T10:00:00Z"])
def test_jupyters_times_are_utc(program, text):
    assert int(program.seconds(text)) == BEGAN


# A real Jupyter, behind a certificate of its own as on the instance


def self_signed(folder: Path) -> list[str]:
    """A certificate that nobody has signed, and its key, as Jupyter's options."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    (folder / "own.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(pem))
    (folder / "own.key").write_bytes(key.private_bytes(pem, *form))
    return [f"--certfile={folder}/own.pem", f"--keyfile={folder}/own.key"]


@pytest.fixture
def jupyter(program, tmp_path, monkeypatch):
    """A Jupyter server without a token; its address."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    port = free_port()
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    options += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    options += [f"--ServerApp.root_dir={tmp_path}", *self_signed(tmp_path)]
    command = [Path(sys.executable).parent / "jupyter-server", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"https://localhost:{port}"

    def answers():
        try:
            return program.ask(address + "/api/status")
        except OSError:
            return False

    until(answers, 60)
    yield address
    process.terminate()
    process.wait(30)


def test_a_running_cell_is_use_and_afterwards_its_end_counts(program, jupyter, tmp_path):
    from jupyter_client import BlockingKernelClient

    now, later = time.time(), time.time() + 1e6
    assert program.last_use(jupyter, 5.0, now) == 5.0, "no kernel, no terminal: as known before"
    asking = urllib.request.Request(jupyter + "/api/kernels", data=b"{}", method="POST")
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(asking, context=context, timeout=60) as answer:
        identifier = json.load(answer)["id"]
    assert now - 10 < program.last_use(jupyter, 5.0, later) < now + 60, "its start is use, once"
    client = BlockingKernelClient()
    client.load_connection_file(str(tmp_path / f"runtime/kernel-{identifier}.json"))
    client.start_channels()

    def idle():
        return program.ask(jupyter + "/api/kernels")[0]["execution_state"] == "idle"

    # Jupyter hears only what a kernel says after Jupyter has subscribed to it.
    until(lambda: client.execute("pass", reply=True) and idle())
    ended = tmp_path / "ended"
    client.execute(f"import os, time\nwhile not os.path.exists({str(ended)!r}): time.sleep(0.1)")
    until(lambda: program.last_use(jupyter, 5.0, later) == later, 30)  # busy: use is now
    ended.touch()
    until(lambda: program.last_use(jupyter, 5.0, later) < later, 30)
    assert ended.stat().st_mtime - 1 < program.last_use(jupyter, 5.0, later) <= time.time() + 1
    client.stop_channels()
