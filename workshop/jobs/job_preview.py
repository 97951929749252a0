"""A session that records: the workshop's own Session over a Recorder."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from local_sagemaker.daemon import REGION
from workshop.requests.recorder import Recorder
from workshop.sessions import Session, check_names, quiet

NOBODY = "0" * 12  # the account in names that stand for real ones


# A job in a VPC needs ids that are somebody's own.
NO_NETWORK = {"subnets": ["subnet-" + "0" * 17], "security_group_ids": ["sg-" + "0" * 17]}


@dataclass(frozen=True)
class OpenSession:
    """session: for a lesson's cells. recorder: what they would have sent through it.

    network: what lessons' parameters of these names are set to, if nobody gives others.
    """

    session: Session
    recorder: Recorder
    network: dict[str, list[str]] = field(default_factory=lambda: NO_NETWORK)


def placeholders(seat: str, region: str) -> dict[str, str]:
    """What the seat's stacks put out, with names in the same form and no account's number."""
    return {
        "BucketName": f"workshop-{seat}-{NOBODY}-{region}",
        "TrainingRoleArn": f"arn:aws:iam::{NOBODY}:role/workshop-{seat}-training",
    }


def recording_session(
    target: str,
    seat: str = "me",
    region: str = "",
    outputs: dict[str, str] | None = None,
    network: dict[str, list[str]] | None = None,
) -> OpenSession:
    """Open a session through which nothing is sent.

    Args:
        target: "local" or "aws".
        region: empty takes AWS_DEFAULT_REGION, or us-east-1; the local endpoint has its own.
        outputs: of the seat's stacks; placeholders if None.
        network: subnets and security_group_ids for jobs in a VPC; placeholders if None.

    Raises:
        SessionError: target or seat is none.
    """
    check_names(target, seat)
    quiet()
    region = REGION if target == "local" else region or region_of_shell()
    recorder = Recorder(region)
    opened = Session(target, seat, recorder.boto_session)
    opened.outputs = outputs or placeholders(seat, region)
    return OpenSession(opened, recorder, network or NO_NETWORK)


def region_of_shell() -> str:
    """The region that the shell's variables choose, or us-east-1."""
    return os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or "us-east-1"
