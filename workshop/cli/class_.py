"""workshop class: before, during and after a class."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import click

from workshop.cli.shared import WrongUse
from workshop.paths import BUILD, ROOT


@click.group("class")
def class_() -> None:
    """For a class: check-in, hand-in and report; its seats, which `stacks up --seats 20` makes."""


@class_.command("check-in")
@click.option("--port", type=click.IntRange(0, 65535), default=4600, show_default=True)
def check_in(port: int) -> None:
    """Print PASS or FAIL for each requirement, and a code to send to the instructor.

    The code holds the kit's version, the platform and the results; no name. Exit status 1 if a
    requirement is not met.
    """
    from workshop.launch import check_in as codes
    from workshop.launch.doctor import examine
    from workshop.launch.installed import FAIL, WARN

    levels = []
    for need, (_, result) in zip(codes.NEEDS, examine(port), strict=True):
        word = "FAIL" if result.level == FAIL else "PASS"
        limited = ", limited" if result.level == WARN else ""
        click.echo(f"{word}  {need:<14} {result.found}{limited}")
        if result.do:
            click.echo(f"{'':<21}to do: {result.do}")
        levels.append(result.level)
    found = codes.here(levels, codes.commit_of(ROOT))
    failed = levels.count(FAIL)
    click.echo("\nPASS: this machine is ready." if found.passed else f"\nFAIL: {failed} to fix.")
    click.echo(f"Send this code to your instructor: {codes.encode(found)}")
    raise SystemExit(0 if found.passed else 1)


@class_.command("codes")
@click.argument("file", type=click.File(encoding="utf-8", errors="replace"))
def codes(file) -> None:
    """Read a text with check-in codes (mails, a chat; - for input) and say who needs help.

    A line holds a name and a code. Exit status 2 if there is no code in it.
    """
    from workshop.launch import check_in
    from workshop.launch.installed import FAIL

    lines = check_in.codes_in(file.read())
    if not lines:
        raise WrongUse("There is no code in it; a code looks like ABCD-EFGH-IJKL-MNOP.")
    failing: Counter[str] = Counter()
    passed = 0
    for who, code in lines:
        try:
            found = check_in.decode(code)
        except check_in.BadCode as error:
            click.echo(f"????  {who}: {error}")
            continue
        bad = [need for need, level in found.levels.items() if level == FAIL]
        failing.update(bad)
        passed += found.passed
        place = f"{found.system} {found.machine}, Python 3.{found.python}, {found.version}"
        word = "PASS" if found.passed else "FAIL"
        click.echo(f"{word}  {who}: {place} ({found.commit}){': ' * bool(bad)}{', '.join(bad)}")
    click.echo(f"{passed} of {len(lines)} pass")
    for need, count in failing.most_common():
        click.echo(f"{count} x {need}")


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
def report(files: tuple[Path, ...], out: Path) -> None:
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
    out.write_text(class_report.page(people, broken), "utf-8", "replace")
    click.echo(f"{out}: {len(people)} participants")
