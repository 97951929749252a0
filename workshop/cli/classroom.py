"""workshop class: before, during and after a class; its seats in the account."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import TextIO

import click

from workshop.cli.clean import at_terminal
from workshop.cli.shared import WrongUse, opened, print_table, target_option
from workshop.cli.stacks import work
from workshop.paths import BUILD


@click.group("class")
def class_() -> None:
    """For a class: hand-in and report; its seats, which `stacks up --seats 20` makes."""


@class_.command("hand-in")
@click.argument("name")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default=Path())
def hand_in(name: str, out: Path) -> None:
    """Write hand-in-NAME.json from your notebooks: sections run, exercises, guesses.

    Save the notebooks first. It holds no code and no answer in full; read it before you send it.
    """
    from workshop.course import class_report

    safe = re.sub(r"[^\w]+", "-", name).strip("-")
    if not safe:
        raise WrongUse(f"{name!r} is not a name: give one with letters.")
    content = class_report.hand_in(name)
    path = out / f"hand-in-{safe}.json"
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    begun = ", ".join(content["lessons"]) or "none"
    click.echo(f"{path}: lessons begun: {begun}")


@class_.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=BUILD / "class.html",
    show_default=False,
    help="Default: build/class.html",
)
@click.option(
    "--roster",
    type=click.File(encoding="utf-8"),
    help="A text file with a name per line: who of them has not handed in?",
)
def report(files: tuple[Path, ...], out: Path, roster: TextIO | None) -> None:
    """Make one page of participants' hand-ins: who is where, and what stops them.

    A line for each file that cannot be read; exit status 1 only if none could be.
    """
    from workshop.course import class_report

    people, broken = class_report.read_all(list(files))
    for line in broken:
        click.echo(f"not read: {line}", err=True)
    if not people:
        raise click.ClickException("no file could be read, so there is no report.")
    out.parent.mkdir(parents=True, exist_ok=True)
    names = [line.strip() for line in roster or () if line.strip()]
    missing = class_report.not_handed_in(people, names)
    out.write_text(class_report.page(people, broken, missing), "utf-8", "replace")
    click.echo(f"{out}: {len(people)} participants")
    if missing:
        click.echo(f"not handed in: {', '.join(missing)}")


@class_.command()
@target_option
def status(target) -> None:
    """Show the class's seats, and whether their stacks can be used.

    Exit status: 0 all can be used, 1 one can't, 2 usage error.
    """
    with opened(target, "class") as session:
        from workshop.account import classroom

        with work("class status", session):
            rows = classroom.status(session)
    if not rows:
        click.echo(f"There is no class in {session.region}. Make one: workshop stacks up --seats N")
        return
    table, wrong = [], 0
    for seat, of_seat in rows.items():
        usable = " ".join(row.name for row in of_seat if row.usable)
        bucket = "".join(row.outputs.get("BucketName", "") for row in of_seat)
        unusable = [f"{row.name}: {row.reason or row.state}" for row in of_seat if not row.usable]
        table.append((seat, usable, bucket, "\n".join(unusable)))
        wrong += len(unusable)
    print_table(("seat", "stacks", "bucket", "not usable"), table)
    click.echo(f"{len(rows) - 1} seats, {wrong} stacks that cannot be used.")
    if wrong:
        raise SystemExit(1)


@class_.command()
@target_option
@click.option("--days", type=click.IntRange(1, 365), default=30, show_default=True)
@click.option(
    "--activate-tags", is_flag=True, help="Let Cost Explorer tell seats apart, from tomorrow on."
)
def cost(target, days, activate_tags) -> None:
    """Show what each seat has cost, and what is billed by the hour now.

    From the account itself: billed seconds of jobs, at our price table. With --target aws also what
    AWS has billed, if Cost Explorer may be asked (0.01 USD a question, a few hours late).
    """
    with opened(target, "class") as session:
        from workshop.account import classroom

        if activate_tags:
            if target == "local":
                raise WrongUse("--activate-tags is for --target aws: nothing is billed here.")
            click.echo(classroom.activate_tags(session))
            return
        with work("class cost", session):
            rows = classroom.costs(session)
        bill = _billed(session, days) if target == "aws" else {}
    _show_costs(rows, bill, target)


def _billed(session, days: int) -> dict[str, float]:
    """What AWS has billed by seat; nothing, and a message, where it does not tell."""
    from botocore.exceptions import BotoCoreError, ClientError

    from workshop.account import classroom, cleanup

    today = datetime.datetime.now(datetime.UTC).date()
    day = datetime.timedelta(days=1)
    try:
        bill = classroom.billed_usd(session, today - days * day, today + day)
    except (ClientError, BotoCoreError) as error:
        click.echo(f"Cost Explorer could not be asked: {cleanup.refusal_reason(error)}")
        return {}
    if not bill:
        click.echo(
            "Cost Explorer reports no cost with the tag workshop. If the tags are not activated: "
            "workshop class cost --target aws --activate-tags"
        )
    return bill


def _show_costs(seats: list, bill: dict[str, float], target: str) -> None:
    from workshop.account.prices import price_table

    names = ["seat", "jobs", "USD of jobs", "USD an hour now", "billed by the hour"]
    rows = [
        [
            each.seat,
            str(each.jobs),
            f"{each.usd:.2f}",
            f"{each.usd_per_hour:.3f}",
            "\n".join(each.by_the_hour),
        ]
        for each in seats
    ]
    if bill:
        names.append("USD billed by AWS")
        for row in rows:
            row.append(f"{bill.get(row[0], 0.0):.2f}")
    print_table(names, rows)
    jobs, now = sum(each.usd for each in seats), sum(each.usd_per_hour for each in seats)
    text = f"{len(seats)} seats: {jobs:.2f} USD of training jobs, {now:.3f} USD an hour now"
    if bill:
        text += f"; {sum(bill.values()):.2f} USD billed by AWS"
    click.echo(f"{text} (list prices of {price_table()['region']}).")
    if unknown := sum(each.unknown for each in seats):
        click.echo(f"{unknown} entries have no known price.")
    click.echo(
        "Not in the jobs' column: endpoints, transforms and notebook instances that are gone, "
        "gigabytes, tax." + (" On this machine nothing costs anything." * (target == "local"))
    )


@class_.command()
@click.argument("seats", type=click.IntRange(1, 100))
@click.option("--notebooks", is_flag=True, help="Each seat has a notebook instance, too.")
@click.option("--region", default="us-east-1", show_default=True)
@click.option("--target", type=click.Choice(["aws"]), default=None, help="Compare with yours.")
def quotas(seats, notebooks, region, target) -> None:
    """Print the quotas that SEATS learners need, as a request that can be pasted.

    With --target aws only those that your account lacks, in your region.
    """
    from workshop.jobs import quotas as needs

    have = None
    if target:
        from botocore.exceptions import BotoCoreError, ClientError

        from workshop.account.preflight.asking import all_quotas

        with opened(target, "class") as session:
            region = session.region
            try:
                have = all_quotas(session)
            except (ClientError, BotoCoreError) as error:
                raise click.ClickException(f"Service Quotas does not answer: {error}") from error
    click.echo(needs.request(needs.needed(seats, notebooks), seats, region, have))


@class_.command()
@target_option
@click.option("--yes", is_flag=True, help="Do not ask. For programs.")
def clean(target, yes) -> None:
    """Delete everything that the class's seats own, then the class; prove that nothing is left.

    Exit status: 0 nothing is left, 1 something is left, 2 usage error.
    """
    if not (yes or at_terminal()):
        raise WrongUse("This is not a terminal, so there is nobody to ask. Add --yes.")
    with opened(target, "class") as session:
        from workshop.account import classroom

        with work("class clean", session):
            names = classroom.members(session)
            click.echo(f"{len(names)} seats in {session.region}: {', '.join(names) or 'no class'}")
            if not yes:
                click.confirm("Delete everything that they own? This can't be undone", abort=True)
            reports, failed = classroom.clean(session, click.echo)
    for seat, report in reports.items():
        for line in report.lines():
            if not report.nothing_left or not line.startswith("Left: nothing"):
                click.echo(f"{seat}: {line}")
    for seat, reason in failed.items():
        click.echo(f"{seat}: could not be cleaned: {reason}")
    zero = sum(report.nothing_left for report in reports.values())
    if failed or zero < len(reports) or classroom.CLASS not in reports:
        click.echo(f"Something is left. {zero} of {len(names)} seats have nothing. Run it again.")
        raise SystemExit(1)
    click.echo(f"Left: nothing, of {len(names)} seats and of the class.")
