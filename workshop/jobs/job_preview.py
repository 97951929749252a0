"""The CreateTrainingJob requests of a lesson's jobs, without sending one.

    for job in preview(lesson_jobs("05"), preview_session("aws")):
        print(job.name, job.request["AlgorithmSpecification"]["TrainingImage"])

The unmodified sagemaker SDK writes the request, botocore checks it, and instead of the network a
function keeps it. So neither credentials nor a running emulator are needed.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse

from local_sagemaker import REGION
from workshop.jobs.lesson_jobs import LessonJob
from workshop.jobs.local_server import variables
from workshop.jobs.session import Session, check_names, quiet
from workshop.paths import SCRIPTS

NOBODY = "0" * 12  # the account in names that stand for real ones
# A job in a VPC needs ids that are somebody's own.
NO_NETWORK = {"subnets": ["subnet-" + "0" * 17], "security_group_ids": ["sg-" + "0" * 17]}
# Calls that a job's start makes and that may seem to have succeeded. Any other is an error.
ALLOWED = {("s3", "PutObject"), ("sagemaker", "CreateTrainingJob")}


ARGUMENTS = (  # of an estimator, by the names that a LessonJob has for them, too
    "instance_count",
    "instance_type",
    "distribution",
    "hyperparameters",
    "environment",
    "dependencies",
    "max_run",
)


class WouldSend(Exception):
    """A call needs an answer from AWS, which a preview cannot give."""


@dataclass(frozen=True)
class PreviewedJob:
    """name: for display. request: CreateTrainingJob's. estimator: the SDK's, which wrote it."""

    name: str
    request: dict[str, Any]
    estimator: Any


class PreviewSession(Session):
    """A session that sends nothing. requests: what CreateTrainingJob would have got, in order."""

    def __init__(
        self, target: str, seat: str = "me", region: str = "", outputs: dict[str, str] | None = None
    ) -> None:
        """Open it.

        Args:
            target: "local" or "aws".
            region: empty takes the shell's, or us-east-1; the emulator has its own.
            outputs: of the seat's stacks; placeholders if None.

        Raises:
            SessionError: there is no such target, or there can be no such seat.
        """
        check_names(target, seat)
        quiet()
        of_shell = os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION")
        region = REGION if target == "local" else region or of_shell or "us-east-1"
        # Neither profile nor files of this machine: they choose who asks, and nobody does.
        alone = {
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
            "ignore_configured_endpoint_urls": (None, None, True, None),
        }
        core = botocore.session.Session(session_vars=alone)
        core.register("before-call.*.*", self._keep)
        keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
        boto_session = boto3.Session(region_name=region, botocore_session=core, **keys)
        super().__init__(target, seat, boto_session)
        self.outputs = outputs or placeholders(seat, region)
        self.requests: list[dict] = []

    def _keep(self, model, params: dict, **_) -> tuple[AWSResponse, dict]:
        """Called by botocore in place of the network, after it has validated the request."""
        service, operation = model.service_model.service_name, model.name
        if (service, operation) not in ALLOWED:
            raise WouldSend(f"{operation} of {service} was called, which needs an answer from AWS.")
        if operation == "CreateTrainingJob":
            self.requests.append(json.loads(params["body"]))
        return AWSResponse("preview", 200, {}, None), {}


preview_session = PreviewSession  # as `session` opens one


def preview(
    jobs: Iterable[LessonJob],
    session: PreviewSession,
    network: dict[str, list[str]] | None = None,
) -> list[PreviewedJob]:
    """What fit() would send for each job. network: for jobs in a VPC; placeholders if None."""
    previewed = []
    with _no_credentials():
        from sagemaker.estimator import EstimatorBase

        fit = EstimatorBase.fit.__wrapped__  # below the SDK's telemetry, which reports each fit()
        for job in jobs:
            built = estimator(job, session, network or NO_NETWORK)
            fit(built, channels(job, session), wait=False)
            previewed.append(PreviewedJob(job.name, session.requests[-1], built))
    return previewed


def estimator(job: LessonJob, session: Session, network: dict[str, list[str]]):
    """The SDK's estimator of a lesson's job; it has not started."""
    from sagemaker import image_uris
    from sagemaker.pytorch import PyTorch
    from sagemaker.tensorflow import TensorFlow

    framework = {"tensorflow": TensorFlow, "pytorch": PyTorch}[job.framework]
    version = {"framework_version": job.version, "py_version": job.py_version}
    if job.names_image:
        uri = image_uris.retrieve(
            job.framework,
            session.boto_session.region_name,
            version=job.version,
            py_version=job.py_version,
            instance_type=job.instance_type,
            image_scope="training",
        )
        version = {"image_uri": uri}
    path = SCRIPTS / (job.script if "/" in job.script else f"train/{job.script}")
    arguments = session.job_settings(job.label or job.name, job.spot, source_dir=path.parent)
    arguments |= {
        name: value for name in ARGUMENTS if (value := getattr(job, name)) not in ({}, [])
    }
    arguments |= version | (network if job.in_vpc else {})
    return framework(entry_point=path.name, **arguments)


def channels(job: LessonJob, session: Session) -> dict | None:
    """What `fit` of a lesson's job gets."""
    from sagemaker.inputs import TrainingInput

    inputs = {}
    for name, channel in job.channels.items():
        options: dict[str, Any] = {key: value for key, value in channel.items() if key != "folder"}
        inputs[name] = TrainingInput(f"s3://{session.bucket}/data/{channel['folder']}", **options)
    return inputs or None


def placeholders(seat: str, region: str) -> dict[str, str]:
    """Outputs as the seat's stacks have them, without a real account number."""
    return {
        "BucketName": f"workshop-{seat}-{NOBODY}-{region}",
        "TrainingRoleArn": f"arn:aws:iam::{NOBODY}:role/workshop-{seat}-training",
    }


def _no_credentials() -> contextlib.AbstractContextManager:
    """Without the shell's variables for AWS credentials and addresses.

    The SDK opens a session when it is imported, which must not look for credentials.
    """
    names = ["AWS_PROFILE", "AWS_DEFAULT_PROFILE", "SAGEMAKER_USER_CONFIG_OVERRIDE"]
    names += [name for name in os.environ if name.startswith("AWS_ENDPOINT_URL")]
    return variables({**dict.fromkeys(names), "AWS_EC2_METADATA_DISABLED": "true"})
