"""`workshop clean`: what it shows, asks and answers; its exit status."""

import pytest
from seat_helpers import Calls, fill, host, names_left

import workshop
from workshop.account import cleanup, stacks
from workshop.cli import clean


@pytest.fixture
def invoke(session, command, monkeypatch):
    """Run `workshop clean` for a seat; at_terminal and answer: who sits there."""

    def run(*arguments, at_terminal=False, answer=None, seat=session.seat):
        monkeypatch.setattr(clean, "at_terminal", lambda: at_terminal)
        return command("clean", "--seat", seat, *arguments, answer=answer)

    return run


def test_nothing_is_deleted_unless_somebody_says_yes(session, invoke):
    host(session, "a", stacks.tags(session.seat))
    before = names_left(session)
    status, output = invoke()
    assert status == 2 and "nothing was deleted. Add --yes" in output
    status, output = invoke(at_terminal=True, answer="\n")
    assert status == 1 and "Nothing was deleted." in output
    assert names_left(session) == before


def test_a_dry_run_shows_and_deletes_nothing(furnished, invoke):
    before = names_left(furnished)
    status, output = invoke("--dry-run", seat=furnished.seat)
    assert status == 0, output
    assert names_left(furnished) == before
    for text in (
        f"What there is of seat {furnished.seat}, target local, us-east-1",
        "2 x ml.m5.large",
        "167.90",  # two ml.m5.large at 0.115 USD, 730 hours
        "115 bytes",
        "1 unfinished uploads",
        "Nothing was deleted: --dry-run.",
        "On this machine: nothing.",
        "local-sagemaker stop --forget",
    ):
        assert text in output, text


def test_yes_deletes_and_proves_it(session, invoke):
    workshop.deploy(session, log=lambda _: None)
    host(session, "a", stacks.tags(session.seat))
    status, output = invoke(at_terminal=True, answer="y\n")
    assert status == 0, output
    assert "Left: nothing." in output
    assert f"stacks: workshop-{session.seat}-storage: deleted" in output
    assert names_left(session) == []
    status, output = invoke("--yes")
    assert status == 0
    assert f"There is nothing of seat {session.seat}" in output
    assert "Left: nothing." in output


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_nothing_seen_is_not_nothing_there(session, invoke, monkeypatch, option):
    calls = Calls(session)
    calls.refuse("ListModels", times=99)
    monkeypatch.setattr("workshop.jobs.session.session", lambda target, seat: session)
    status, output = invoke(option)
    assert status == 1
    assert "There is nothing that could be seen of seat" in output
    assert "Could not be looked at: models: ListModels: AccessDenied" in output
    assert "Left: nothing." not in output


def test_an_interrupt_says_that_a_second_run_goes_on(session, invoke, monkeypatch):
    workshop.deploy(session, log=lambda _: None)
    fill(session)
    calls = Calls(session)
    calls.refuse("DeleteStack", error="KeyboardInterrupt")
    with monkeypatch.context() as patch:
        patch.setattr("workshop.jobs.session.session", lambda target, seat: session)
        status, output = invoke("--yes")
    assert status == 130
    assert "Interrupted. 1 of 3 entries are done" in output
    assert invoke("--yes")[0] == 0
    assert names_left(session) == []


def test_on_aws_the_account_is_named(session, capsys):
    session.target = "aws"
    clean.show(cleanup.Inventory(), session)
    account = session.client("sts").get_caller_identity()["Account"]
    assert len(account) == 12 and f"us-east-1, account {account}." in capsys.readouterr().out
