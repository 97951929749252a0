"""workshop class: before a class its quotas; during and after it hand-ins and their report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TextIO

import click

from workshop.cli.shared import WrongUse, opened
from workshop.paths import BUILD


@click.group("class")
def class_() -> None:
    """For a class: quotas, hand-in, report."""


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

        with opened(target, "me") as session:
            region = session.region
            try:
                have = all_quotas(session)
            except (ClientError, BotoCoreError) as error:
                raise click.ClickException(f"Service Quotas does not answer: {error}") from error
    click.echo(needs.request(needs.needed(seats, notebooks), seats, region, have))
