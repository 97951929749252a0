"""`workshop.session`: the one switch between this machine and AWS."""

from __future__ import annotations

import logging
import os
import re
import sys
from functools import cached_property

import boto3
from botocore import exceptions
from botocore.config import Config

from local_sagemaker import daemon
from workshop import endpoint, stacks
from workshop.credentials import remedy
from workshop.live import in_notebook
from workshop.paths import SCRIPTS
from workshop.renting import renting

TARGETS = ("local", "aws")
SEAT = re.compile(r"[a-z0-9]([a-z0-9-]{0,14}[a-z0-9])?")
MAX_RUN_SECONDS = 30 * 60  # what a job may cost at most: far above any lesson's job

# What the scripts print in their JSON lines, for SageMaker to read from the log.
METRICS = [
    {"Name": name, "Regex": rf'"{name}": ([0-9.eE+-]+)'}
    for name in ("train_loss", "test_accuracy", "samples_per_second", "step_seconds")
]


class SessionError(Exception):
    """The session cannot be had; the message says why and what to do."""


def session(target: str = "local", seat: str = "me") -> Session:
    """Open a session.

    Args:
        target: "local" (this machine; the endpoint is started if it is down) or "aws" (your
            own credentials and region are used and checked).
        seat: names the stacks and jobs, so that several learners can share an account.

    Raises:
        SessionError: with what to do.
    """
    check_names(target, seat)
    quiet()
    boto_session = _local() if target == "local" else _aws()
    return Session(target, seat, boto_session)


def check_names(target: str, seat: str) -> None:
    """Raise SessionError unless target and seat are such as a session can have."""
    if target not in TARGETS:
        raise SessionError(f'target is {target!r}; it must be "local" or "aws".')
    if not SEAT.fullmatch(seat):
        raise SessionError(
            f"seat is {seat!r}; it must be 1 to 16 small letters, digits or hyphens, with no "
            "hyphen at either end."
        )


class Session:
    """An open session: its clients, and what the stacks of its seat hold.

    Attributes: target ("local" or "aws"), seat, region, boto_session.
    """

    def __init__(self, target: str, seat: str, boto_session: boto3.Session) -> None:
        self.target, self.seat, self.boto_session = target, seat, boto_session
        self.region: str = boto_session.region_name

    def __repr__(self) -> str:
        return f"Session(target={self.target!r}, seat={self.seat!r}, region={self.region!r})"

    def client(self, service: str):
        """A boto3 client."""
        return self.boto_session.client(service)

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The outputs of the seat's stacks. Here they are made if missing; on AWS never so."""
        try:
            return stacks.outputs(self)
        except stacks.MissingStack:
            if self.target == "aws":
                raise
            stacks.deploy(self, say=lambda _: None)
            print("Made the storage and roles stacks on the local endpoint.")
            return stacks.outputs(self)

    @property
    def bucket(self) -> str:
        """Name of the seat's S3 bucket."""
        return self.outputs["BucketName"]

    @property
    def role(self) -> str:
        """ARN of the role that training jobs take on."""
        return self.outputs["TrainingRoleArn"]

    @cached_property
    def sagemaker_session(self):
        """The sagemaker SDK's own session."""
        import sagemaker  # slow, and not needed by everybody who opens a session

        _usual_tracebacks()
        return sagemaker.Session(boto_session=self.boto_session, default_bucket=self.bucket)

    def job_settings(self, name: str, spot: bool = False, keep_alive: int = 0) -> dict:
        """What every job of this seat has in common, as arguments of an estimator.

        name: a short word for the job; the SDK adds the time to it. spot, keep_alive (seconds):
        see workshop.renting, which raises CannotRent where they do not go together.
        """
        jobs = f"s3://{self.bucket}/jobs"
        rented = renting(f"{jobs}/checkpoints/{name}", MAX_RUN_SECONDS, spot, keep_alive)
        return {
            "sagemaker_session": self.sagemaker_session,
            "role": self.role,
            "source_dir": str(SCRIPTS),
            "base_job_name": f"{self.job_prefix}{name}",
            "output_path": jobs,
            "code_location": jobs,
            "max_run": MAX_RUN_SECONDS,
            "metric_definitions": METRICS,
            "disable_profiler": True,
            "tags": stacks.tags(self.seat),
            **rented,
        }

    @property
    def job_prefix(self) -> str:
        """How the names of this seat's jobs begin."""
        return f"workshop-{self.seat}-"


def quiet() -> None:
    """Keep the SDK's remarks out of the notebooks. Warnings and errors are still shown."""
    os.environ["SAGEMAKER_SUPPRESS_V2_WARNING"] = "1"  # why v2: it alone has every distribution
    for name in ("botocore", "sagemaker", "sagemaker.config", "sagemaker.image_uris"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _usual_tracebacks() -> None:
    """Undo what importing the SDK does: errors drawn as pictures, which no notebook records."""
    if sys.excepthook.__module__ == "rich.traceback":
        sys.excepthook = sys.__excepthook__
    if in_notebook():
        shell = sys.modules["IPython"].get_ipython()
        for name in ("_showtraceback", "showtraceback", "showsyntaxerror"):
            if getattr(vars(shell).get(name), "__module__", "") == "rich.traceback":
                delattr(shell, name)


def _local() -> boto3.Session:
    try:
        found, _ = endpoint.ensure_up()
    except daemon.DaemonError as error:
        raise SessionError(f"The local endpoint cannot be started. {error}") from error
    endpoint.point_here(found)
    return boto3.Session(region_name=os.environ["AWS_DEFAULT_REGION"])


def _aws() -> boto3.Session:
    endpoint.point_back()
    elsewhere = sorted(name for name in os.environ if name.startswith("AWS_ENDPOINT_URL"))
    if elsewhere:
        raise SessionError(
            f'target is "aws", but {elsewhere[0]} sends calls to {os.environ[elsewhere[0]]}. '
            "Start again from a shell without it: unset " + " ".join(elsewhere)
        )
    try:
        found = boto3.Session()
        if not found.region_name:
            raise SessionError(
                "No AWS region is set. Choose one: export AWS_DEFAULT_REGION=us-east-1, or run "
                "`aws configure`."
            )
        config = Config(connect_timeout=10, read_timeout=20, retries={"max_attempts": 2})
        found.client("sts", config=config).get_caller_identity()
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        raise SessionError(remedy(error)) from error
    return found
