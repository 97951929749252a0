"""`ip` and `tc`: found outside an ordinary user's PATH, and done without where they are missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_sagemaker.cluster import linux, probe
from local_sagemaker.emulator_error import EmulatorError

TESTS = Path(__file__).parents[1]
INSTALL = "the command `{}` is missing: install the package iproute2"
# Some of the tests that need namespaces or shaped links.
NEED_THEM = ["test_many_jobs.py", "test_instance_bandwidth.py"]
PYTEST_WITHOUT_COMMANDS = """
import sys, pytest
from local_sagemaker.cluster import linux
linux.SYSTEM_FOLDERS = ()
sys.exit(pytest.main(sys.argv[1:]))
"""


def program(folder: Path, name: str) -> str:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return str(path)


def test_path_comes_first_and_then_the_systems_folders(tmp_path, monkeypatch):
    assert {"/usr/sbin", "/sbin"} <= set(linux.SYSTEM_FOLDERS)  # Debian's
    beyond = program(tmp_path / "sbin", "tc")
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", (str(tmp_path / "sbin"),))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert linux.system_command("tc") == beyond
    private = program(tmp_path / "bin", "tc")
    assert linux.system_command("tc") == private
    assert linux.system_command("ip") is None


@pytest.fixture
def without_commands(tmp_path, monkeypatch):
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(probe.sys, "platform", "linux")
    monkeypatch.setenv("PATH", str(tmp_path))


def test_without_them_instances_are_plain_processes_and_links_have_no_rate(without_commands):
    assert probe.isolation() == ("processes", INSTALL.format("ip"))
    with pytest.raises(
        EmulatorError, match=f"namespaces were asked for, but: {INSTALL.format('ip')}"
    ):
        probe.isolation("namespaces")
    with pytest.raises(FileNotFoundError, match=INSTALL.format("ip")):
        linux.batch("ip", ["link"])
    assert probe.shaping_unavailable_reason() == INSTALL.format("tc")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere another reason comes first")
def test_without_them_tests_skip_with_the_reason_and_none_fails(tmp_path):
    files = [str(path) for name in NEED_THEM for path in TESTS.rglob(name)]
    assert len(files) == len(NEED_THEM)
    command = [sys.executable, "-c", PYTEST_WITHOUT_COMMANDS, "-m", "namespaces or shaping"]
    done = subprocess.run(
        [*command, "-v", "-p", "no:cacheprovider", *files],
        capture_output=True,
        text=True,
        cwd=TESTS.parents[1],
        timeout=280,
        env=os.environ | {"PATH": str(tmp_path), "PYTHONPATH": str(TESTS.parents[1])},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = done.stdout.splitlines()[-1]
    assert "skipped" in summary and "passed" not in summary, summary
    assert all(name in done.stdout for name in NEED_THEM), done.stdout
    reasons = [line for line in done.stdout.splitlines() if line.startswith("SKIPPED")]
    assert reasons and all(INSTALL.format("ip") in reason for reason in reasons), reasons


def test_an_installation_that_instances_do_not_see_is_named(monkeypatch):
    """Each instance has a /tmp of its own; without the reason nobody knows what to change."""
    monkeypatch.setattr(sys, "prefix", "/tmp/venv")
    kind, why = probe.isolation()
    assert kind == "processes" and "installed in /tmp" in why and "elsewhere" in why
