"""The command `local-sagemaker`: the emulator, its jobs, and what this machine allows them."""

from __future__ import annotations

import logging
import os
import shlex
import time
from pathlib import Path

import click
from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker import credentials, daemon
from local_sagemaker.cluster.spec import PROCESSES
from local_sagemaker.core.aws import name_in
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.job_events import JobEvents
from local_sagemaker.training import spot
from local_sagemaker.training.job_record import FINAL

MAX_GRACE = 3600  # seconds
FOLLOW_SECONDS = 0.5


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """SageMaker on this machine: training jobs and hosted models as real processes."""


@main.command()
@click.option("--port", type=click.IntRange(0, 65535), default=None, help="0 takes a free one.")
@click.option(
    "--isolation",
    type=click.Choice(["auto", "namespaces", "processes"]),
    default="auto",
    show_default=True,
    help="How instances are isolated.",
)
@click.option(
    "--grace",
    type=click.FloatRange(min=0, max=MAX_GRACE),
    default=20.0,
    show_default=True,
    help="Seconds from SIGTERM to SIGKILL.",
)
@click.option("--foreground", is_flag=True, help="Run until Ctrl-C, and log to this terminal.")
@click.option("--state", type=Path, default=None, hidden=True)
def start(port, isolation, grace, foreground, state) -> None:
    """Start the emulator in the background."""
    state = state or daemon.state_directory()
    number = daemon.DEFAULT_PORT if port is None else port
    if foreground:
        from local_sagemaker.server.serve import serve

        # moto's EC2 begins with 1,300 images in each region, all written with each change.
        os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        return serve(state, number, isolation, grace)
    emulator = daemon.running(state)
    if emulator:
        if port not in (None, 0, emulator.port):
            raise click.ClickException(
                f"The emulator is up on port {emulator.port}. For port {port}: "
                "`local-sagemaker stop` first."
            )
        click.echo(f"The emulator is up: {emulator.url} (pid {emulator.pid})")
        return
    options = ["--isolation", isolation, "--grace", str(grace)]
    emulator = daemon.start(state, number, options)
    click.echo(f"The emulator answers on {emulator.url} (pid {emulator.pid})")
    if emulator.isolation == PROCESSES:
        click.echo(f"Instances are plain processes, without own addresses: {emulator.why}")
    if os.geteuid() == 0:
        click.echo("You are root, and so is every job's script. An ordinary account will do.")
    click.echo('For a shell: eval "$(local-sagemaker env)"')


@main.command()
@click.option("--forget", is_flag=True, help="Also remove all jobs, buckets and logs.")
def stop(forget) -> None:
    """Stop the emulator. Running jobs are killed; everything else is kept."""
    state = daemon.state_directory()
    was_up = daemon.stop(state)
    click.echo("The emulator is down." if was_up else "The emulator was not up.")
    if forget:
        daemon.forget(state)
        click.echo(f"Jobs, buckets and logs in {state} are removed.")


@main.command()
def status() -> None:
    """Say whether the emulator is up, and where. Exit code 3 if it is not."""
    state = daemon.state_directory()
    emulator = daemon.running(state)
    if not emulator:
        click.echo(f"The emulator is down (state: {state}). `local-sagemaker start` starts it.")
        raise SystemExit(3)
    minutes = max(0.0, time.time() - emulator.started) / 60  # the clock may have been set back
    click.echo(f"address    {emulator.url}")
    click.echo(f"process    {emulator.pid}, up for {minutes:.0f} min")
    click.echo(f"instances  {emulator.isolation}: {emulator.why}")
    click.echo(f"state      {state}")
    click.echo(f"log        {state / 'emulator.log'}")


@main.command()
def env() -> None:
    """Print what a shell needs: eval "$(local-sagemaker env)"."""
    try:
        variables = daemon.environment_of_running()
    except EmulatorError:
        click.echo("false")  # eval takes its exit status from this, not from ours
        raise
    lines = [f"unset {name}" for name in daemon.conflicting_variables(os.environ)]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    click.echo("\n".join(lines), color=True)  # otherwise click removes escape sequences from paths


@main.command()
def doctor() -> None:
    """Try what this machine allows jobs: a line for each thing, and what to do where it lacks."""
    from local_sagemaker.doctor import findings

    for name, here, to_do in findings():
        click.echo(f"{'!!' if to_do else 'ok'}  {name:<11} {here}")
        if to_do:
            click.echo(f"{'':<16}to do: {to_do}")


@main.command()
def jobs() -> None:
    """List training jobs, the newest first: status, seconds, instances, name."""
    pages = daemon.client("sagemaker").get_paginator("search").paginate(Resource="TrainingJob")
    every = [result["TrainingJob"] for page in pages for result in page["Results"]]
    if not every:
        click.echo("No jobs yet.")
    for job in every:
        status, seconds = job["TrainingJobStatus"], job.get("TrainingTimeInSeconds")
        spent = "" if seconds is None else f"{seconds} s"
        instances = "{InstanceCount} x {InstanceType}".format(**job["ResourceConfig"])
        click.echo(f"{status:<10} {spent:>8}  {instances:<20} {job['TrainingJobName']}")


def _describe(job: str) -> dict:
    """DescribeTrainingJob's answer; a refusal, or no answer, becomes a sentence."""
    try:
        return daemon.client("sagemaker").describe_training_job(TrainingJobName=job)
    except (ClientError, BotoCoreError) as error:
        raise EmulatorError(f"Job {job}: {error} `local-sagemaker jobs` lists them.") from error


@main.command()
@click.argument("job")
@click.option("--follow", "-f", is_flag=True, help="Keep printing until the job has ended.")
def logs(job, follow) -> None:
    """Print what the instances of JOB said, in the order of time, and how it ended."""
    events = JobEvents(daemon.client("logs"), job)
    ended = False
    while not ended:
        description = _describe(job)
        ended = description["TrainingJobStatus"] in FINAL
        for host, line in events.new():
            click.echo(f"{host}  {line}")
        if not follow:
            break
        time.sleep(0 if ended else FOLLOW_SECONDS)
    if ended:
        reason = description.get("FailureReason")
        click.echo(f"{description['TrainingJobStatus']}{': ' + reason if reason else ''}")


@main.command()
@click.argument("job")
def interrupt(job) -> None:
    """Interrupt JOB as AWS interrupts spot instances: SIGTERM, a grace period, SIGKILL.

    The job starts again on other instances, with the checkpoints that are in S3. A job that
    is not training yet is interrupted once it does. AWS has no such command: there it happens
    when AWS needs the instances.
    """
    description = _describe(job)
    if description["TrainingJobStatus"] in FINAL:
        raise click.UsageError(f"{job} has ended already: {description['TrainingJobStatus']}.")
    if not description["EnableManagedSpotTraining"]:
        raise click.UsageError(
            f"{job} has no spot instances, and others are not taken away. Start it with "
            "use_spot_instances=True and max_wait=..., or end it with StopTrainingJob."
        )
    with credentials.state_errors(state := daemon.state_directory()):
        spot.ask(state, name_in(description["TrainingJobArn"].split(":")[3], job))
    click.echo(f"{job}: its instances are taken away; it starts again on others.")
