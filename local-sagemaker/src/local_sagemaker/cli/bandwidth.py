"""local-sagemaker bandwidth: the bandwidth between instances."""

from __future__ import annotations

import click

from local_sagemaker import daemon
from local_sagemaker.cli.shared import WrongUse
from local_sagemaker.cluster import probe
from local_sagemaker.cluster.bandwidth import BY_TYPE, UNLIMITED, Bandwidth, parse
from local_sagemaker.cluster.spec import PROCESSES
from local_sagemaker.training import instance_types, job_bandwidth


@click.command()
@click.option("--between", metavar="RATE", help="For every job, such as 200mbit.")
@click.option("--latency", metavar="TIME", help="One way, such as 1ms; with --between.")
@click.option(
    "--by-type", is_flag=True, help="What AWS gives each job's instance type, scaled down."
)
@click.option("--wide", is_flag=True, help="As fast as this machine can (the default).")
def bandwidth(between, latency, by_type, wide) -> None:
    """Set or show the bandwidth between a job's instances.

    Every instance sends at most RATE and receives at most RATE, at the same time. The
    setting applies to jobs started from now on. A job can ask for links of its own:
    environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"}.

    Without an option: the current setting, and what AWS documents for each instance type.
    """
    words = _setting(between, latency, by_type, wide)
    state = daemon.state_directory()
    try:
        if words is not None:
            job_bandwidth.write_setting(state, words)
        current = job_bandwidth.read_setting(state)
    except OSError as error:
        raise click.ClickException(
            f"The setting in {state} cannot be used: {error.strerror}. Choose another directory "
            "with the variable LOCAL_SAGEMAKER_STATE_DIR."
        ) from error
    _show(current, daemon.running(state))
    if words is None:
        click.echo()
        for line in _table():
            click.echo(line)


def _setting(between: str | None, latency: str | None, by_type: bool, wide: bool) -> str | None:
    """The words of the options; None without any. Raises WrongUse."""
    if sum([between is not None, by_type, wide]) > 1:
        raise WrongUse("Give one of --between, --by-type and --wide.")
    if latency is not None and between is None:
        raise WrongUse("--latency goes with --between, such as --between 200mbit --latency 1ms.")
    chosen = between if between is not None else BY_TYPE if by_type else UNLIMITED if wide else None
    try:
        return None if chosen is None else job_bandwidth.words(chosen, latency)
    except ValueError as error:
        raise WrongUse(str(error)) from error


def _show(current: str, emulator: daemon.Running | None) -> None:
    """The setting, which jobs it is for, and what of it this machine cannot do."""
    try:
        links = parse(current)
    except ValueError as error:  # somebody edited the file
        raise click.ClickException(
            f"{error} `local-sagemaker bandwidth --wide` resets it."
        ) from error
    click.echo(f"links     {_description(links)}")
    up = "up: jobs that start from now on get them" if emulator else "down: jobs get them once up"
    click.echo(f"emulator  {up}")
    if links != UNLIMITED:
        delayed = isinstance(links, Bandwidth) and links.latency > 0
        for line in _unavailable(emulator, delayed):
            click.echo(f"but       {line}")


def _description(links: Bandwidth | str) -> str:
    if links == UNLIMITED:
        return "wide: as fast as this machine is"
    if links == BY_TYPE:
        return (
            f"by type: what the job's instance type has on AWS, divided by {instance_types.SCALE}"
        )
    return f"{links} between instances"


def _unavailable(emulator: daemon.Running | None, delayed: bool) -> list[str]:
    kind, why = (emulator.isolation, emulator.why) if emulator else probe.isolation()
    if kind == PROCESSES:
        return [f"links stay wide: instances are plain processes here ({why})"]
    if reason := probe.shaping_unavailable_reason():
        return [f"links stay wide: this machine cannot shape them ({reason})"]
    if delayed and (reason := probe.shaping_unavailable_reason(latency=True)):
        return [f"there will be no latency: this kernel refuses netem ({reason})"]
    return []


def _table() -> list[str]:
    """What AWS documents, and what --by-type makes of it."""
    lines = [f"{'instance type':<18}{'Gbit/s':>8}{'burst':>8}  {'EFA':<5}{'--by-type':>12}"]
    for name, row in instance_types.network_table().items():
        burst = f"{row.burst_gbit:g}" if row.burst_gbit else ""
        efa = "yes" if row.efa else ""
        here = f"{instance_types.scaled(row) / 1e6:g} Mbit/s"
        lines.append(f"{name:<18}{row.gbit:>8g}{burst:>8}  {efa:<5}{here:>14}")
    days = sorted({str(row.date) for row in instance_types.network_table().values()})
    lines.append(f"Documented by AWS, read {days[-1]}; the sources: {instance_types.NETWORK_TABLE}")
    return lines
