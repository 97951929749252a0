"""workshop why: why a job hangs, is slow or failed. workshop record: start ranks for it."""

from __future__ import annotations

import sys
import threading

import click

from workshop.cli.shared import INTERRUPTED, WrongUse, opened, seat_option, target_option


@click.command("why")
@click.argument("job", required=False)
@target_option
@seat_option
def explain(job, target, seat) -> None:
    """Say why JOB hangs, is slow or failed: which rank, most likely why, what to do.

    JOB is a training job's name, the folder of a record (with a slash), or a process's id; without
    it, the last ranks that were started here. The job is only read: it goes on undisturbed. The
    exit status is 0 if it shows no fault, 1 if it shows one, 2 if too little is known.
    """
    from workshop.diagnosis.answer import diagnose
    from workshop.diagnosis.evidence import NoEvidence

    try:
        if target == "aws":
            with opened(target, seat) as session:
                answer = diagnose(job, session)
        else:
            answer = diagnose(job)
    except NoEvidence as error:
        raise WrongUse(str(error)) from error
    click.echo(answer)
    sys.exit(1 if answer.findings else 0 if answer.known else 2)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def record(command) -> None:
    """Run COMMAND, such as `torchrun ... train.py`, so that `workshop why` can ask its ranks.

    The script is not edited. While it runs, or afterwards, call `workshop why` elsewhere.
    """
    from workshop.launch.processes import Processes, ProcessFailed

    with Processes([command], line_from=_line) as processes:
        click.echo(f"workshop why {processes.record}/", err=True)
        try:
            processes.wait(threading.TIMEOUT_MAX / 2, lambda line: click.echo(_text(line)))
        except ProcessFailed:
            sys.exit(processes.statuses[0] or 1)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)


def _line(index: int, text: str):
    from workshop.launch.mpirun import TAG, line_from_mpirun
    from workshop.launch.processes import Line

    return line_from_mpirun(index, text) if TAG.match(text) else Line(None, text)


def _text(line) -> str:
    return line.text if line.rank is None else str(line)
