"""`workshop doctor` and what the Horovod lessons ask."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner
from emulator_harness import executable

from local_sagemaker.cluster import linux
from workshop.cli.doctor import doctor
from workshop.doctor import checks, installed
from workshop.doctor.installed import FAIL, OK, WARN, CheckResult
from workshop.launch import horovod


def run_among_traps(folder: Path, program: str, *arguments: str) -> subprocess.CompletedProcess:
    """Run a program in a folder whose files must not be executed.

    `python -c` and `python -m` would import them in place of the standard library's.
    """
    for name in ("json", "subprocess", "multiprocessing", "ctypes", "numpy", "socket"):
        trap = f"open({str(folder / 'executed')!r}, 'a').write(__name__)\nraise ImportError"
        (folder / f"{name}.py").write_text(trap)
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    env = os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(folder / "state")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=folder, env=env)
    assert not (folder / "executed").exists(), (folder / "executed").read_text()
    return done


def test_doctor_checks_this_machine(tmp_path):
    """The real thing, as a user starts it, in whatever folder."""
    done = run_among_traps(tmp_path, "workshop", "doctor")
    lines = done.stdout.splitlines()
    results = {line[6:19].strip(): line[:4].strip() for line in lines if line[:4].strip()}
    assert results["Python"] == results["mpirun"] == results["packages"] == OK, done.stdout
    assert {"namespaces", "tc tbf", "disk"} <= set(results)
    bad = sum(level != OK for name, level in results.items() if level in (WARN, FAIL))
    assert sum("to do: " in line for line in lines) == bad
    assert done.returncode == (1 if FAIL in results.values() else 0)


@pytest.mark.parametrize(("level", "code"), [(OK, 0), (WARN, 0), (FAIL, 1)])
def test_only_a_failure_makes_it_exit_1(monkeypatch, level, code):
    monkeypatch.setattr(checks, "all_checks", lambda: [("need", lambda: CheckResult(level, "x"))])
    result = CliRunner().invoke(doctor, [])
    assert result.exit_code == code and level in result.output
    summary = result.output.splitlines()[-1]
    assert summary.startswith("FAIL: 0 of 1 OK; FAIL need; " if code else "PASS: ")
    assert "kit 0.1.0, " in summary and "Python 3" in summary


def test_a_check_that_breaks_is_a_failure_not_an_end(monkeypatch):
    breaks = ("breaks", mock.Mock(side_effect=ValueError("oh")))
    fine = ("fine", lambda: CheckResult(OK, "x"))
    monkeypatch.setattr(checks, "all_checks", lambda: [breaks, fine])
    output = CliRunner().invoke(doctor, []).output
    assert re.search("FAIL  breaks .*oh", output) and "OK    fine" in output


def test_a_package_of_another_version_is_named(monkeypatch, tmp_path):
    altered = tmp_path / "lock.txt"
    altered.write_text("numpy==1.0.0 \\\n    --hash=sha256:aa\nno-such-package==1\n")
    monkeypatch.setattr(installed, "LOCK", altered)
    check = installed.packages()
    assert check.level == FAIL and check.do == "make setup"
    assert "not 1.0.0" in check.finding and "no-such-package 1 is missing" in check.finding


def test_markers_of_other_machines_are_left_out():
    text = "here==1 \\\n    --hash=sha256:aa\nthere==2 ; sys_platform == 'win32'\n"
    assert installed.locked(text) == {"here": "1"}


@pytest.mark.parametrize(("gigabytes", "level"), [(0.1, FAIL), (2, WARN), (50, OK)])
def test_disk_levels(monkeypatch, gigabytes, level):
    usage = type("Usage", (), {"free": gigabytes * 1e9})
    monkeypatch.setattr(checks.shutil, "disk_usage", lambda place: usage)
    assert checks.disk().level == level


def test_what_the_emulator_lacks_is_a_warning(monkeypatch):
    monkeypatch.setattr(linux, "system_command", lambda name: None)
    check = checks.emulator_results()["tc tbf"]
    assert check.level == WARN and "iproute2" in check.do


@pytest.mark.parametrize(
    ("version", "level"),
    [("2.9.19", WARN), ("2.13.0", OK), ("1.28.9", WARN), ("1.46.0", OK), (None, OK)],
)
def test_an_aws_cli_that_would_call_aws_itself(monkeypatch, tmp_path, version, level):
    if version:
        executable(tmp_path / "aws", f"#!/bin/sh\necho aws-cli/{version} Python/3.11.2\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    check = checks.aws_cli()
    assert check.level == level and (level == OK or "--endpoint-url" in check.do)


def test_an_mpirun_that_fails_is_a_failure(monkeypatch, tmp_path):
    executable(tmp_path / "mpirun", "#!/bin/sh\necho no slots >&2; exit 1\n")
    monkeypatch.setattr(checks.sys, "executable", str(tmp_path / "python"))
    check = checks.mpirun()
    assert check.level == FAIL and "no slots" in check.finding


def test_horovod_missing_says_what_the_set_up_found(monkeypatch, tmp_path):
    monkeypatch.setattr(horovod.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(horovod.sys, "prefix", str(tmp_path))
    assert "make setup" in horovod.horovod_status().do
    left = {"state": "failed", "reason": "Horovod is not installed: its build failed", "do": "X"}
    (tmp_path / "horovod.json").write_text(json.dumps(left))
    status = horovod.horovod_status()
    assert not status.available and status.why == left["reason"] and status.do == "X"
