"""`local-sagemaker bandwidth`: what it sets, and what it then says."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from local_sagemaker import daemon
from local_sagemaker.cli import bandwidth as command
from local_sagemaker.cluster import probe
from local_sagemaker.training.instance_types import network_table


@pytest.fixture
def state(tmp_path, monkeypatch):
    """A state directory of this test's own, on a machine that can do everything."""
    monkeypatch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(probe, "isolation", lambda: ("namespaces", "this machine allows them"))
    monkeypatch.setattr(probe, "shaping_unavailable_reason", lambda latency=False: None)
    return tmp_path / "state"


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(command, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_first_links_are_wide_and_the_types_are_shown(state):
    output = run()
    assert "links     wide: as fast as this machine is" in output
    assert "emulator  down" in output
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line.startswith("ml.")}
    assert set(rows) == set(network_table())
    assert rows["ml.c5.xlarge"] == ["ml.c5.xlarge", "1.25", "10", "1.25", "Mbit/s"]
    assert rows["ml.p4d.24xlarge"] == ["ml.p4d.24xlarge", "400", "yes", "400", "Mbit/s"]


@pytest.mark.parametrize(
    ("arguments", "saved", "output"),
    [
        (["--between", "200mbit"], "200mbit", "200 Mbit/s between instances"),
        (["--between", "200mbit", "--latency", "1ms"], "200mbit 1ms", "200 Mbit/s and 1 ms"),
        (["--by-type"], "by-type", "divided by 1000"),
        (["--wide"], "wide", "wide: as fast as"),
    ],
)
def test_what_is_set_is_kept_and_shown(state, arguments, saved, output):
    assert output in run(*arguments)
    assert (state / "bandwidth").read_text() == f"{saved}\n"
    assert output in run()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--between", "20"], "'20' is not a rate: expected a number and kbit, mbit or gbit"),
        (["--between", ""], "expected a rate such as 200mbit"),
        (["--between", "20mbit", "--latency", "x"], "'x' is not a latency"),
        (["--latency", "1ms"], "--latency goes with --between"),
        (["--between", "20mbit", "--wide"], "Give one of --between, --by-type and --wide"),
        (["--by-type", "--latency", "1ms"], "--latency goes with --between"),
        (["--between", "wide", "--latency", "1ms"], "goes with a rate such as 200mbit"),
        (["--faster"], "No such option"),
    ],
)
def test_wrong_use_changes_nothing(state, arguments, why):
    run("--between", "7mbit")
    assert why in run(*arguments, code=2)
    assert (state / "bandwidth").read_text() == "7mbit\n"


def test_a_kernel_without_netem_is_told_at_the_door(state, monkeypatch):
    monkeypatch.setattr(
        probe, "shaping_unavailable_reason", lambda latency=False: "no" if latency else None
    )
    output = run("--between", "200mbit", "--latency", "1ms")
    assert "but       there will be no latency: this kernel refuses netem (no)" in output
    assert "but" not in run("--between", "200mbit")


def test_plain_processes_stay_wide(state, monkeypatch):
    monkeypatch.setattr(probe, "isolation", lambda: ("processes", "no user namespaces"))
    output = run("--between", "200mbit")
    assert "links stay wide: instances are plain processes here (no user namespaces)" in output
    assert "but" not in run("--wide")
    up = daemon.Running(1, 4600, "127.0.0.1", "processes", "asked for", 0.0)
    monkeypatch.setattr(daemon, "running", lambda state: up)  # it knows its own reason
    output = run("--between", "200mbit")
    assert "emulator  up: jobs that start from now on get them" in output
    assert "plain processes here (asked for)" in output


def test_a_setting_that_somebody_broke_is_an_error_with_a_way_out(state):
    state.mkdir()
    for setting in (b"quick\n", b"\xff\xfe200mbit"):
        (state / "bandwidth").write_bytes(setting)
        assert "`local-sagemaker bandwidth --wide` resets it" in run(code=1)
    run("--wide")
    daemon.forget(state)
    assert not (state / "bandwidth").exists(), "`local-sagemaker stop --forget` forgets it"
