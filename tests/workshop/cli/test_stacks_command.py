"""`workshop stacks`: what it prints, its exit codes, Ctrl-C."""

import functools
import re
from unittest import mock

import pytest

from workshop.account import stacks


@pytest.fixture
def run(sagemaker_emulator, clean_aws, command, monkeypatch):
    """Runs `workshop stacks ...`; exit status and output."""
    monkeypatch.setattr(stacks, "_packed", lambda: b"kit")
    return functools.partial(command, "stacks")


def row(output, stack):
    """The line of a table that begins with a stack's name."""
    return next(line for line in output.splitlines() if f" {stack} " in line)


def test_up_status_and_down_of_all(run):
    names = stacks.ALL
    code, out = run("up", *names, "--seat", "cmd", "-p", "Nat=yes", "-p", "Email=a@b.org")
    assert code == 0
    for name in names:
        assert re.search(rf"^workshop-cmd-{name}: created, [\d.]+ s$", out, re.MULTILINE)
    code, out = run("up", *names, "--seat", "cmd")
    assert code == 0 and out.count("no change") == 5
    code, out = run("status", "--seat", "cmd")
    assert code == 0
    assert row(out, "workshop-cmd-storage").endswith(" 0.000 │")
    assert row(out, "workshop-cmd-network").endswith(" 0.050 │")
    assert row(out, "workshop-cmd-notebook").endswith(" 0.230 │")
    for part in ("1 nat-gateway", "1 public-ipv4", "1 notebook ml.m5.xlarge"):
        assert part in out
    assert "On AWS this would be 0.280 USD an hour." in out
    code, out = run("down", "network", "notebook", "--seat", "cmd")
    assert (code, out.count(": deleted")) == (0, 2)
    code, out = run("status", "--seat", "cmd")
    assert row(out, "workshop-cmd-network").split("│")[2].strip() == "not there"
    assert "On AWS this would be 0.000 USD an hour." in out


def test_a_stack_that_needs_another_is_not_begun(run):
    code, out = run("up", "notebook", "--seat", "cmd3")
    assert code == 1
    assert "workshop-cmd3-storage is not there" in out
    code, out = run("status", "--seat", "cmd3")
    assert out.count("not there") == 5


def test_a_parameter_of_no_stack_is_named(run):
    code, out = run("up", "storage", "-p", "Nat=yes")
    assert code == 1 and "no parameter 'Nat'" in out


def test_a_budget_needs_an_address_only_when_it_is_made(run):
    code, out = run("up", "budget", "--seat", "cmd6")
    assert code == 1 and "Email" in out
    code, out = run("up", "budget", "--seat", "cmd6", "-p", "Email=a@b.org")
    assert code == 0 and "workshop-cmd6-budget: created" in out
    code, out = run("up", "budget", "--seat", "cmd6", "-p", "BudgetUsd=30")
    assert code == 0 and "workshop-cmd6-budget: updated" in out


def test_ctrl_c_leaves_what_a_second_run_finishes(run, monkeypatch):
    with monkeypatch.context() as during:  # storage was begun by then
        during.setattr(stacks, "_checked", mock.Mock(side_effect=KeyboardInterrupt))
        code, out = run("up", "--seat", "cmd4")
    assert code == 130
    assert "CloudFormation has begun, it finishes" in out
    again = re.search(r"the same again: workshop stacks (up .*)", out)[1].split()
    assert again == ["up", "storage", "roles", "--seat", "cmd4", "--target", "local"]
    code, out = run(*again)
    assert code == 0
    assert "workshop-cmd4-storage: no change" in out and "workshop-cmd4-roles: created" in out


def test_on_aws_down_asks_first(run, monkeypatch):
    run("up", "--seat", "cmd5")
    from workshop.jobs import local_server, session

    opened = session.session("local", "cmd5")
    opened.target = "aws"
    monkeypatch.setattr(session, "session", lambda target, seat: opened)
    monkeypatch.setattr(local_server, "point_back", lambda: None)
    code, out = run("down", "--seat", "cmd5", "--target", "aws", answer="n\n")
    assert code == 1 and "workshop-cmd5-storage, workshop-cmd5-roles" in out
    assert all(row.usable for row in stacks.status(opened, stacks.STACKS))
    code, out = run("down", "--seat", "cmd5", "--target", "aws", answer="y\n")
    assert (code, out.count(": deleted")) == (0, 2)
