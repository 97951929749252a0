"""local-sagemaker links: the bandwidth between instances."""

from __future__ import annotations

import click

from local_sagemaker import daemon
from local_sagemaker.cli.shared import WrongUse
from local_sagemaker.cluster import probe
from local_sagemaker.cluster.bandwidth import BY_TYPE, WIDE, parse
from local_sagemaker.cluster.spec import PROCESSES
from local_sagemaker.training import instance_network, job_bandwidth


@click.command()
@click.option("--between", metavar="RATE", help="For every job, such as 200mbit.")
@click.option("--latency", metavar="TIME", help="One way, such as 1ms; with --between.")
@click.option(
    "--by-type", is_flag=True, help="What AWS gives each job's instance type, scaled down."
)
@click.option("--wide", is_flag=True, help="As fast as this machine can (the default).")
def links(between, latency, by_type, wide) -> None:
    """Set or show the bandwidth between a job's instances.

    Every instance sends at most RATE and receives at most RATE, at the same time. The
    setting applies to jobs started from now on. A job can ask for links of its own:
    environment={"LOCAL_SAGEMAKER_LINKS": "200mbit"}.

    Without an option: the current setting, and what AWS documents for each instance type.
    """
    wanted = _wanted(between, latency, by_type, wide)
    state = daemon.state_directory()
    try:
        if wanted is not None:
            job_bandwidth.set_to(state, wanted)
        holds = job_bandwidth.setting(state)
    except OSError as error:
        raise click.ClickException(
            f"The setting in {state} cannot be used: {error.strerror}. Choose another directory "
            "with the variable LOCAL_SAGEMAKER_STATE_DIR."
        ) from error
    _tell(holds, daemon.running(state))
    if wanted is None:
        click.echo()
        for line in _table():
            click.echo(line)


def _wanted(between: str | None, latency: str | None, by_type: bool, wide: bool) -> str | None:
    """The words of the options; None without any. Raises WrongUse."""
    if sum([between is not None, by_type, wide]) > 1:
        raise WrongUse("Give one of --between, --by-type and --wide.")
    if latency is not None and between is None:
        raise WrongUse("--latency goes with --between, such as --between 200mbit --latency 1ms.")
    chosen = between if between is not None else BY_TYPE if by_type else WIDE if wide else None
    try:
        return None if chosen is None else job_bandwidth.words(chosen, latency)
    except ValueError as error:
        raise WrongUse(str(error)) from error


def _tell(holds: str, emulator: daemon.Running | None) -> None:
    """What holds, for whom, and what of it this machine cannot do."""
    try:
        found = parse(holds)
    except ValueError as error:  # somebody edited the file
        raise click.ClickException(f"{error} `local-sagemaker links --wide` resets it.") from error
    click.echo(f"links     {_said(found)}")
    up = "up: jobs that start from now on get them" if emulator else "down: jobs get them once up"
    click.echo(f"emulator  {up}")
    if found != WIDE:
        for line in _lacking(emulator, delayed=found != BY_TYPE and found.latency > 0):
            click.echo(f"but       {line}")


def _said(found) -> str:
    if found == WIDE:
        return "wide: as fast as this machine is"
    if found == BY_TYPE:
        return (
            f"by type: what the job's instance type has on AWS, divided by {instance_network.SCALE}"
        )
    return f"{found} between instances"


def _lacking(emulator: daemon.Running | None, delayed: bool) -> list[str]:
    kind, why = (emulator.isolation, emulator.why) if emulator else probe.isolation()
    if kind == PROCESSES:
        return [f"links stay wide: instances are plain processes here ({why})"]
    if why := probe.why_no_shaping():
        return [f"links stay wide: this machine cannot shape them ({why})"]
    if delayed and (why := probe.why_no_shaping(latency=True)):
        return [f"there will be no latency: this kernel refuses netem ({why})"]
    return []


def _table() -> list[str]:
    """What AWS documents, and what --by-type makes of it."""
    lines = [f"{'instance type':<18}{'Gbit/s':>8}{'burst':>8}  {'EFA':<5}{'--by-type':>12}"]
    for name, one in instance_network.table().items():
        burst = f"{one.burst_gbit:g}" if one.burst_gbit else ""
        efa = "yes" if one.efa else ""
        here = f"{instance_network.scaled(one) / 1e6:g} Mbit/s"
        lines.append(f"{name:<18}{one.gbit:>8g}{burst:>8}  {efa:<5}{here:>14}")
    days = sorted({str(one.date) for one in instance_network.table().values()})
    lines.append(f"Documented by AWS, read {days[-1]}; the sources: {instance_network.TABLE}")
    return lines
