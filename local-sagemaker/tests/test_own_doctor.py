"""`local-sagemaker doctor`: each thing that jobs need, and what to do where it is not there."""

import functools
import shutil
import socket

import pytest
from command_harness import ok, refused, run
from emulator_harness import executable

from local_sagemaker import doctor
from local_sagemaker.cli import main
from local_sagemaker.cluster import linux, probe

command = functools.partial(run, main)


def test_it_tries_this_machine(tmp_path):
    lines = ok(command(tmp_path / "state", "doctor")).splitlines()
    rows = [line.split()[:2] for line in lines if "to do:" not in line]
    names = ["namespaces", "tc", "tc", "torchrun", "mpirun", "packages", "port", "state"]
    names[5:5] = ["aws"] if shutil.which("aws") else []
    assert [name for _, name in rows] == names
    assert sum(sign == "!!" for sign, _ in rows) == len(lines) - len(rows), "each with a remedy"
    assert str(tmp_path / "state") in lines[-1]


@pytest.mark.parametrize(
    ("version", "old"),
    [("1.28.3", True), ("1.46.0", False), ("2.9.19", True), ("2.13.0", False), ("3.0.0", False)],
)
def test_an_aws_cli_that_would_call_aws_is_named(tmp_path, monkeypatch, version, old):
    executable(tmp_path / "aws", f"#!/bin/sh\necho aws-cli/{version} Python/3.11.2\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    [(here, remedy)] = [row[1:] for row in doctor.findings() if row[0] == "aws"]
    assert here == f"aws-cli/{version}" and ("install 1.29, 2.13 or newer" in remedy) == old


def test_what_is_missing_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(doctor.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(doctor, "FRAMEWORKS", ())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(doctor, "ADDRESS", taken.getsockname())
        to_do = {name: remedy for name, _, remedy in doctor.findings()}
    assert to_do.pop("state") == ""
    expected = ["iproute2"] * 3 + ["pip install torch", "Open MPI", "pip", "--port 0"]
    for (name, remedy), word in zip(to_do.items(), expected, strict=True):
        assert word in remedy, name


def test_a_kernel_that_refuses_says_how_to_allow(monkeypatch):
    monkeypatch.setattr(probe, "_try_namespaces", lambda folder: "Operation not permitted")
    reason = probe.namespaces_unavailable_reason()
    assert reason.startswith("Operation not permitted. ") and "sudo sysctl" in reason


def test_a_state_directory_that_cannot_be_used(tmp_path, monkeypatch):
    monkeypatch.setattr(probe, "isolation", lambda: ("processes", "asked for"))
    (tmp_path / "file").write_text("in the way")
    assert "LOCAL_SAGEMAKER_STATE_DIR" in refused(command(tmp_path / "file" / "state", "doctor"))
