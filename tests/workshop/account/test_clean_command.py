"""`workshop clean`: what it shows, asks and answers; its exit status."""

import pytest
from click.testing import CliRunner
from seat_helpers import Calls, fill, host, names_left

import workshop
from workshop.account import cleanup, stacks
from workshop.cli import clean as command
from workshop.cli import main


@pytest.fixture
def invoke(session, monkeypatch):
    """Run `workshop clean` for a seat; at_terminal and answer: who sits there."""

    def run(*arguments, at_terminal=False, answer=None, seat=session.seat):
        monkeypatch.setattr(command, "at_terminal", lambda: at_terminal)
        options = ["clean", "--seat", seat, *arguments]
        return CliRunner().invoke(main, options, input=answer)

    return run


def test_nothing_is_deleted_unless_somebody_says_yes(session, invoke):
    host(session, "a", stacks.tags(session.seat))
    before = names_left(session)
    nobody, nothing = invoke(), invoke(at_terminal=True, answer="\n")
    assert nobody.exit_code == 2 and "nothing was deleted. Add --yes" in nobody.output
    assert nothing.exit_code == 1 and "Nothing was deleted." in nothing.output
    assert names_left(session) == before


def test_a_dry_run_shows_and_deletes_nothing(furnished, invoke):
    before = names_left(furnished)
    result = invoke("--dry-run", seat=furnished.seat)
    assert result.exit_code == 0, result.output
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
        assert text in result.output, text


def test_yes_deletes_and_proves_it(session, invoke):
    workshop.deploy(session, log=lambda _: None)
    host(session, "a", stacks.tags(session.seat))
    result = invoke(at_terminal=True, answer="y\n")
    assert result.exit_code == 0, result.output
    assert "Left: nothing." in result.output
    assert f"stacks: workshop-{session.seat}-storage: deleted" in result.output
    assert names_left(session) == []
    again = invoke("--yes")
    assert again.exit_code == 0
    assert f"There is nothing of seat {session.seat}" in again.output
    assert "Left: nothing." in again.output


def test_what_is_left_is_told_with_its_reason(session, invoke, monkeypatch):
    workshop.deploy(session, log=lambda _: None)
    fill(session)
    bucket = session.bucket
    calls = Calls(session)
    calls.refuse("DeleteObjects", times=99)
    monkeypatch.setattr("workshop.jobs.session.session", lambda target, seat: session)
    result = invoke("--yes")
    assert result.exit_code == 1
    assert f"Left: objects: {bucket}: DeleteObjects: AccessDeniedException" in result.output
    left = f"Left: stacks: {session.job_prefix}storage: The bucket {bucket} is not empty"
    assert left in result.output, "a bucket keeps its stack"
    assert "Left: nothing." not in result.output


@pytest.mark.parametrize("option", ["--yes", "--dry-run"])
def test_nothing_seen_is_not_nothing_there(session, invoke, monkeypatch, option):
    calls = Calls(session)
    calls.refuse("ListModels", times=99)
    monkeypatch.setattr("workshop.jobs.session.session", lambda target, seat: session)
    result = invoke(option)
    assert result.exit_code == 1
    assert "There is nothing that could be seen of seat" in result.output
    assert "Could not be looked at: models: ListModels: AccessDenied" in result.output
    assert "Left: nothing." not in result.output


def test_an_interrupt_says_that_a_second_run_goes_on(session, invoke, monkeypatch):
    workshop.deploy(session, log=lambda _: None)
    fill(session)
    calls = Calls(session)
    calls.refuse("DeleteStack", error="KeyboardInterrupt")
    with monkeypatch.context() as patch:
        patch.setattr("workshop.jobs.session.session", lambda target, seat: session)
        result = invoke("--yes")
    assert result.exit_code == 130
    assert "Interrupted. 1 of 3 entries are done" in result.output
    assert invoke("--yes").exit_code == 0
    assert names_left(session) == []


def test_on_aws_the_account_is_named(session, capsys):
    session.target = "aws"
    command.show(cleanup.Inventory(), session)
    account = session.client("sts").get_caller_identity()["Account"]
    assert len(account) == 12 and f"us-east-1, account {account}." in capsys.readouterr().out


def test_many_of_a_kind_are_one_row():
    from workshop.account.cleanup import Resource

    some = [Resource("models", f"m{at}", size=500) for at in range(command.MAX_ROWS)]
    assert len(command.rows("models", some)) == command.MAX_ROWS
    (row,) = command.rows("models", [*some, Resource("models", "last", size=None)])
    assert row[:4] == ("models", "m0 and 6 others", "7", "not told")
