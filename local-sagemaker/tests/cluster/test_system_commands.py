"""`ip` and `tc`: found outside an ordinary user's PATH, and done without where they are missing."""

import sys

import pytest
from emulator_harness import executable

from local_sagemaker.cluster import linux, probe
from local_sagemaker.emulator_error import EmulatorError

INSTALL = "the command `{}` is missing: install the package iproute2"


def test_path_comes_first_and_then_the_systems_folders(tmp_path, monkeypatch):
    assert {"/usr/sbin", "/sbin"} <= set(linux.SYSTEM_FOLDERS)  # Debian's
    beyond = executable(tmp_path / "sbin" / "tc", "#!/bin/sh\n")
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", (str(tmp_path / "sbin"),))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert linux.system_command("tc") == str(beyond)
    private = executable(tmp_path / "bin" / "tc", "#!/bin/sh\n")
    assert linux.system_command("tc") == str(private)
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


def test_an_installation_that_instances_do_not_see_is_named(monkeypatch):
    """Each instance has a /tmp of its own; without the reason nobody knows what to change."""
    monkeypatch.setattr(sys, "prefix", "/tmp/venv")
    kind, why = probe.isolation()
    assert kind == "processes" and "installed in /tmp" in why and "elsewhere" in why
