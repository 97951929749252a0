"""`workshop.session`: the one switch between this machine and AWS."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import boto3
from botocore import exceptions
from botocore.config import Config

import local_sagemaker
from workshop.account.prices import MAX_RUN_SECONDS
from workshop.account.stacks import SEAT, STACKS, MissingStack, create_or_update, outputs, tags
from workshop.jobs import local_server
from workshop.launch.recording import job_environment
from workshop.output import in_notebook
from workshop.paths import DATA, TRAIN

TARGETS = ("local", "aws")
WAIT_FACTOR = 2  # a spot job may wait as long as it may run

# What the scripts print in their JSON lines, for SageMaker to read from the log.
METRICS = [
    {"Name": name, "Regex": rf'"{name}": ([0-9.eE+-]+)'}
    for name in ("train_loss", "test_accuracy", "samples_per_second", "step_seconds")
]


class SessionError(Exception):
    """The session cannot be opened; the message gives the reason and the remedy."""


def session(target: str = "local", seat: str = "me") -> Session:
    """Open a session.

    Args:
        target: "local" (this machine; the emulator is started if it is down) or "aws" (your
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
    """Raise SessionError for an unknown target or a malformed seat."""
    if target not in TARGETS:
        raise SessionError(f'target is {target!r}; it must be "local" or "aws".')
    if not SEAT.fullmatch(seat):
        raise SessionError(
            f"seat is {seat!r}; it must be 1 to 16 small letters or digits, such as me or ann2."
        )


class Session:
    """An open session: its clients, and what the stacks of its seat hold.

    Attributes: target ("local" or "aws"), seat, region, boto_session.
    """

    def __init__(self, target: str, seat: str, boto_session: boto3.Session) -> None:
        self.target, self.seat, self.boto_session = target, seat, boto_session
        self.region: str = boto_session.region_name
        self.clients: dict = {}

    def __repr__(self) -> str:
        return f"Session(target={self.target!r}, seat={self.seat!r}, region={self.region!r})"

    def client(self, service: str):
        """A boto3 client. Each is made once: that takes a tenth of a second."""
        if service not in self.clients:
            self.clients[service] = self.boto_session.client(service)
        return self.clients[service]

    def web_address(self, key: str) -> str:
        """A URL with which a process without credentials may read an object for an hour."""
        if "signing" not in self.clients:
            signature = Config(signature_version="s3v4")
            self.clients["signing"] = self.boto_session.client("s3", config=signature)
        where = {"Bucket": self.bucket, "Key": key}
        return self.clients["signing"].generate_presigned_url("get_object", where, ExpiresIn=3600)

    @cached_property
    def outputs(self) -> dict[str, str]:
        """The outputs of the seat's stacks. Missing stacks are created locally, never on AWS."""
        try:
            return outputs(self)
        except MissingStack:
            if self.target == "aws":
                raise
            for name in STACKS:
                create_or_update(self, name)
            print("Made the storage and roles stacks on the emulator.")
            return outputs(self)

    @property
    def bucket(self) -> str:
        """Name of the seat's S3 bucket."""
        return self.outputs["BucketName"]

    @property
    def role(self) -> str:
        """ARN of the role that training jobs assume."""
        return self.outputs["TrainingRoleArn"]

    @cached_property
    def sagemaker_session(self):
        """The sagemaker SDK's own session."""
        import sagemaker  # slow, and not needed by everybody who opens a session

        _usual_tracebacks()
        _check_defaults_once()
        return sagemaker.Session(boto_session=self.boto_session, default_bucket=self.bucket)

    def upload(self, dataset: str, quiet: bool = False) -> dict[str, str]:
        """Prepare a data set, upload it to the seat's bucket, and return the channels for `fit`.

        dataset: "digits", "digits-28" (resampled to 28 x 28 pixels) or "mnist". The copy on this
            machine is in data/DATASET.
        """
        import data_prep

        name, _, size = dataset.partition("-")
        options = {"size": int(size)} if size else {}
        folder = getattr(data_prep, name).prepare(DATA / dataset, quiet=True, **options)
        address = f"s3://{self.bucket}/data/{dataset}"
        data_prep.upload(folder, address, client=self.client("s3"), quiet=quiet)
        return {name: f"{address}/{name}" for name in ("training", "test")}

    def job_settings(
        self, name: str, spot: bool = False, source_dir: Path = TRAIN
    ) -> dict[str, Any]:
        """The estimator arguments that all jobs of this seat share.

        Args:
            name: a short word for the job; the SDK adds the time to it.
            spot: take instances that AWS has to spare, for less; AWS may take them away at any
                time. The job's checkpoints get a place of their own in S3, and it resumes there.
            source_dir: the folder that is packed for the instances, and has the entry_point.
        """
        jobs = f"s3://{self.bucket}/jobs"
        settings: dict[str, Any] = {}
        if spot:
            unique = f"{datetime.now(UTC):%Y-%m-%d-%H-%M-%S}-{uuid4().hex[:8]}"
            settings["use_spot_instances"] = True
            settings["max_wait"] = WAIT_FACTOR * MAX_RUN_SECONDS
            settings["checkpoint_s3_uri"] = f"{jobs}/checkpoints/{name}-{unique}"
        return {
            "sagemaker_session": self.sagemaker_session,
            "role": self.role,
            "source_dir": str(source_dir),
            "base_job_name": f"{self.job_prefix}{name}",
            "output_path": jobs,
            "code_location": jobs,
            "max_run": MAX_RUN_SECONDS,
            "metric_definitions": METRICS,
            "disable_profiler": True,
            # The SDK adds it by itself, and accounts that are new since 2026-07-30 may not have it
            # (docs.aws.amazon.com/sagemaker/latest/dg/debugger-createtrainingjob-api.html).
            "debugger_hook_config": False,
            "tags": tags(self.seat),
            **settings,
        }

    @property
    def job_prefix(self) -> str:
        """The prefix of this seat's job names."""
        return f"workshop-{self.seat}-"


def quiet() -> None:
    """Keep the SDK's remarks out of the notebooks. Warnings and errors are still shown."""
    os.environ["SAGEMAKER_SUPPRESS_V2_WARNING"] = "1"  # why v2: it alone has every distribution
    for name in ("botocore", "sagemaker", "sagemaker.config", "sagemaker.image_uris"):
        logging.getLogger(name).setLevel(logging.WARNING)


@cache
def _check_defaults_once() -> None:
    """Validate the SDK's defaults once for each content.

    The SDK validates them at each access: more than ten times a job, 3 CPU seconds in all.
    """
    from sagemaker import utils

    check = utils.validate_sagemaker_config

    @cache
    def check_text(text: str) -> None:
        check(json.loads(text))

    def check_once(sagemaker_config: dict) -> None:
        check_text(json.dumps(sagemaker_config))

    utils.validate_sagemaker_config = check_once  # type: ignore[assignment]


def _usual_tracebacks() -> None:
    """Restore plain tracebacks: importing the SDK installs rich's, which no notebook records."""
    if sys.excepthook.__module__ == "rich.traceback":
        sys.excepthook = sys.__excepthook__
    if in_notebook():
        shell = sys.modules["IPython"].get_ipython()
        for name in ("_showtraceback", "showtraceback", "showsyntaxerror"):
            if getattr(vars(shell).get(name), "__module__", "") == "rich.traceback":
                delattr(shell, name)


def _local() -> boto3.Session:
    try:
        running, _ = local_server.ensure_up()
    except local_sagemaker.EmulatorError as error:
        raise SessionError(f"The emulator cannot be started. {error}") from error
    local_server.point_here(running)
    boto_session = boto3.Session(region_name=os.environ["AWS_DEFAULT_REGION"])
    boto_session.events.register("before-call.sagemaker.CreateTrainingJob", _record_ranks)
    return boto_session


def _record_ranks(params: dict, **_: object) -> None:
    """Let `workshop why` ask the ranks of a job of the emulator.

    In the last moment, so that what a cell writes is what lessons show, and what AWS would get.
    """
    request = json.loads(params["body"])
    environment = job_environment(request["TrainingJobName"], request.get("Environment", {}))
    params["body"] = json.dumps({**request, "Environment": environment}).encode()


def _aws() -> boto3.Session:
    local_server.point_back()
    elsewhere = sorted(name for name in os.environ if name.startswith("AWS_ENDPOINT_URL"))
    if elsewhere:
        raise SessionError(
            f'target is "aws", but {elsewhere[0]} sends calls to {os.environ[elsewhere[0]]}. '
            "Start again from a shell without it: unset " + " ".join(elsewhere)
        )
    try:
        boto_session = boto3.Session()
        if not boto_session.region_name:
            raise SessionError(
                "No AWS region is set. Choose one: export AWS_DEFAULT_REGION=us-east-1, or run "
                "`aws configure`."
            )
        config = Config(connect_timeout=10, read_timeout=20, retries={"max_attempts": 2})
        boto_session.client("sts", config=config).get_caller_identity()
    except (exceptions.BotoCoreError, exceptions.ClientError) as error:
        raise SessionError(_remedy(error)) from error
    return boto_session


def _remedy(error: Exception) -> str:
    """The cause of a failed sign-in to AWS, and the remedy."""
    missing = (exceptions.NoCredentialsError, exceptions.PartialCredentialsError)
    if isinstance(error, missing):
        return (
            f"AWS credentials are missing ({error}). Sign in with `aws configure` or `aws sso "
            'login`, or work without AWS: target="local".'
        )
    if isinstance(error, exceptions.ProfileNotFound):
        return f"{error}. Correct AWS_PROFILE; `aws configure list-profiles` shows what there is."
    code = error.response["Error"]["Code"] if isinstance(error, exceptions.ClientError) else ""
    if "Expired" in code or "SSO" in type(error).__name__ or "Token" in type(error).__name__:
        return f"Your AWS sign-in has expired ({error}). Sign in again, for example: aws sso login"
    if code in ("InvalidClientTokenId", "SignatureDoesNotMatch", "UnrecognizedClientException"):
        return f"AWS does not know these credentials ({error}). Check them with `aws configure`."
    return f"AWS does not answer as expected: {error}"
