"""idle_stop.py against a real Jupyter, behind a certificate of its own as on the instance."""

import datetime
import json
import os
import runpy
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from notebook_instance_harness import until

from workshop.paths import CLOUDFORMATION

PROGRAM = runpy.run_path(str(CLOUDFORMATION / "notebook/idle_stop.py"))


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate that nobody has signed, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "own.pem", folder / "own.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return certificate, secret


@pytest.fixture
def jupyter(tmp_path, monkeypatch):
    """A Jupyter server without a token; its address."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    certificate, secret = self_signed(tmp_path)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    options += ["--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"]
    options += [
        f"--certfile={certificate}",
        f"--keyfile={secret}",
        f"--ServerApp.root_dir={tmp_path}",
    ]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "jupyter-server", *options],
        env={**os.environ, "JUPYTER_CONFIG_DIR": str(tmp_path / "config")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"https://localhost:{port}"
    until(lambda: answers(address), 60)
    yield address
    process.terminate()
    process.wait(30)


def answers(address):
    try:
        return PROGRAM["ask"](address + "/api/status")
    except OSError:
        return False


def start_kernel(address) -> str:
    asking = urllib.request.Request(address + "/api/kernels", data=b"{}", method="POST")
    context = ssl._create_unverified_context()
    with urllib.request.urlopen(asking, context=context, timeout=60) as answer:
        return json.load(answer)["id"]


def state_of_kernel(address) -> str:
    return PROGRAM["ask"](address + "/api/kernels")[0]["execution_state"]


@pytest.mark.slow
def test_a_running_cell_is_use_and_afterwards_its_end_counts(jupyter, tmp_path):
    from jupyter_client import BlockingKernelClient

    last_use, now = PROGRAM["last_use"], time.time()
    assert last_use(jupyter, 5.0, now) == 5.0, "no kernel, no terminal: what was known before"
    identifier = start_kernel(jupyter)
    assert now - 10 < last_use(jupyter, 5.0, now + 1e6) < now + 60, "its start is use, once"
    client = BlockingKernelClient()
    client.load_connection_file(str(tmp_path / f"runtime/kernel-{identifier}.json"))
    client.start_channels()
    # Jupyter hears only what a kernel says after Jupyter has subscribed to it.
    until(lambda: client.execute("pass", reply=True) and state_of_kernel(jupyter) == "idle")
    client.execute("import time; time.sleep(10)")
    until(lambda: last_use(jupyter, 5.0, now + 1e6) == now + 1e6, 30)  # busy: use is now
    until(lambda: last_use(jupyter, 5.0, now + 1e6) < now + 1e6, 30)
    ended = time.time()
    assert ended - 10 < last_use(jupyter, 5.0, now + 1e6) <= ended + 1
    client.stop_channels()
