"""A boto3 session that sends nothing: it keeps what would have been sent."""

from __future__ import annotations

import json
import os

import boto3
import botocore.session
from botocore.awsrequest import AWSResponse

# Calls that a job's start makes and that may seem to have succeeded. Any other is an error.
ALLOWED = {("s3", "PutObject"), ("sagemaker", "CreateTrainingJob")}


class WouldSend(Exception):
    """Something wanted an answer of AWS, which a recorder cannot give."""


class Recorder:
    """Keeps the CreateTrainingJob requests of its session, checked by botocore, as sent.

    Attributes: requests (the bodies, in order), boto_session.
    """

    def __init__(self, region: str) -> None:
        self.requests: list[dict] = []
        # Neither profile nor files of this machine: they choose who asks, and nobody does.
        alone = {
            "profile": (None, None, None, None),
            "config_file": (None, None, os.devnull, None),
            "credentials_file": (None, None, os.devnull, None),
            "ignore_configured_endpoint_urls": (None, None, True, None),
        }
        core = botocore.session.Session(session_vars=alone)
        core.register("before-call.*.*", self._answer)
        self.boto_session = boto3.Session(
            region_name=region,
            aws_access_key_id="none",
            aws_secret_access_key="none",
            botocore_session=core,
        )

    def _answer(self, model, params: dict, **_) -> tuple[AWSResponse, dict]:
        """botocore asks this in place of the network. It has validated the request by now."""
        service, operation = model.service_model.service_name, model.name
        if (service, operation) not in ALLOWED:
            raise WouldSend(f"{operation} of {service} was called, which needs an answer of AWS.")
        if operation == "CreateTrainingJob":
            self.requests.append(json.loads(params["body"]))
        return AWSResponse("recorder", 200, {}, None), {}
