"""`workshop doctor` and what the Horovod lessons ask."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from local_sagemaker.cluster import linux
from workshop.cli.doctor import doctor
from workshop.launch import doctor as checks
from workshop.launch import horovod, installed
from workshop.launch.installed import FAIL, OK, WARN, CheckResult


def test_doctor_checks_this_machine():
    """The real thing, as a user starts it."""
    command = [str(Path(sys.executable).parent / "workshop"), "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    results = json.loads(done.stdout)
    assert set(results) >= {"Python", "packages", "mpirun", "namespaces", "tc tbf", "disk"}
    assert all(r["level"] in (OK, WARN, FAIL) and r["found"] for r in results.values())
    assert all(r["do"] for r in results.values() if r["level"] != OK)
    assert results["mpirun"]["level"] == OK, results["mpirun"]
    assert results["packages"]["level"] == OK, results["packages"]
    levels = [r["level"] for r in results.values()]
    assert done.returncode == (1 if FAIL in levels else 0)


@pytest.mark.parametrize(("level", "code"), [(OK, 0), (WARN, 0), (FAIL, 1)])
def test_only_a_failure_makes_it_exit_1(monkeypatch, level, code):
    monkeypatch.setattr(
        checks, "all_checks", lambda port: [("need", lambda: CheckResult(level, "x"))]
    )
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == code and level in result.output


def test_a_check_that_breaks_is_a_failure_not_an_end(monkeypatch):
    def breaks():
        raise ValueError("oh")

    fine = ("fine", lambda: CheckResult(OK, "x"))
    monkeypatch.setattr(checks, "all_checks", lambda port: [("breaks", breaks), fine])
    result = CliRunner().invoke(doctor, ["--json"])
    found = json.loads(result.output)
    assert found["breaks"]["level"] == FAIL and "oh" in found["breaks"]["found"]
    assert found["fine"]["level"] == OK


def test_a_package_of_another_version_is_named(monkeypatch, tmp_path):
    altered = tmp_path / "lock.txt"
    altered.write_text("numpy==1.0.0 \\\n    --hash=sha256:aa\nno-such-package==1\n")
    monkeypatch.setattr(installed, "LOCK", altered)
    check = installed.packages()
    assert check.level == FAIL and check.do == "make setup"
    assert "not 1.0.0" in check.found and "no-such-package 1 is missing" in check.found


def test_markers_of_other_machines_are_left_out():
    text = "here==1 \\\n    --hash=sha256:aa\nthere==2 ; sys_platform == 'win32'\n"
    assert installed.locked(text) == {"here": "1"}


class Answer(http.server.BaseHTTPRequestHandler):
    body = b"{}"

    def do_POST(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args):
        pass


@pytest.mark.parametrize(
    ("body", "level"), [(b'{"TrainingJobSummaries": []}', OK), (b"<html>", WARN)]
)
def test_a_used_port_is_ours_or_not(body, level):
    handler = type("Handler", (Answer,), {"body": body})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        assert checks.endpoint_port(server.server_port).level == level
    finally:
        server.shutdown()
        server.server_close()


def test_a_free_port_is_free():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    assert checks.endpoint_port(port).level == OK


@pytest.mark.parametrize(("gigabytes", "level"), [(0.1, FAIL), (2, WARN), (50, OK)])
def test_disk_levels(monkeypatch, gigabytes, level):
    usage = type("Usage", (), {"free": gigabytes * 1e9})
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda place: usage)
    assert checks.disk().level == level


def test_without_tc_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(checks, "system_command", lambda name: None)
    check = checks.iproute2()
    assert check.level == WARN and "iproute2" in check.do and "ip and tc not found" in check.found


def test_tc_beyond_the_users_path_is_found(monkeypatch, tmp_path):
    for name in ("ip", "tc"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", (str(tmp_path),))
    assert checks.iproute2() == CheckResult(OK, "ip and tc")


def test_an_mpirun_that_fails_is_a_failure(monkeypatch, tmp_path):
    program = tmp_path / "mpirun"
    program.write_text("#!/bin/sh\necho no slots >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(checks.sys, "executable", str(tmp_path / "python"))
    check = checks.mpirun()
    assert check.level == FAIL and "no slots" in check.found


def test_horovod_missing_says_what_the_set_up_found(monkeypatch, tmp_path):
    monkeypatch.setattr(horovod.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(horovod.sys, "prefix", str(tmp_path))
    assert "g++" in horovod.horovod_status().do
    left = {"state": "failed", "reason": "Horovod is not installed: its build failed", "do": "X"}
    (tmp_path / "horovod.json").write_text(json.dumps(left))
    status = horovod.horovod_status()
    assert not status.available and status.why == left["reason"] and status.do == "X"


@pytest.mark.horovod
def test_horovod_here_is_found():
    status = horovod.horovod_status()
    if not status.available:
        pytest.skip(str(status))
    assert status.version == "0.28.1"
