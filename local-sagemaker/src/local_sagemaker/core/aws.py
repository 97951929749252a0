"""The emulator as its own client, and the variables that every process of a job or a worker has."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from boto3.exceptions import Boto3Error
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

if TYPE_CHECKING:
    from local_sagemaker.moto_backend.state import MotoState

REGION = "us-east-1"  # the emulator's own; others are there as well
# What the sagemaker SDK reads of a file, here and on instances. It would ask STS, at a fixed
# address on the internet, for the account that is a part of its default bucket's name.
SDK_DEFAULTS = f"""\
SchemaVersion: '1.0'
SageMaker:
  PythonSDK:
    Modules:
      TelemetryOptOut: true
      Session:
        DefaultS3Bucket: sagemaker-{REGION}-local
"""
AWS_ERRORS = (BotoCoreError, Boto3Error, ClientError)  # what a client raises


class LocalAws:
    """boto3 clients for the emulator on `port`.

    credentials: its own. state: what it keeps, where it is this very process.
    """

    def __init__(self, port: int, credentials: Credentials, state: MotoState | None = None) -> None:
        self.port, self.credentials, self.state = port, credentials, state
        self.client = cache(self._client)

    def _client(self, service: str, region: str):
        key = self.credentials
        session = boto3.session.Session(key.access_key, key.secret_key, region_name=region)
        # proxies: a learner's HTTP_PROXY is no way to this process.
        config = Config(retries={"max_attempts": 2}, s3={"addressing_style": "path"}, proxies={})
        url = f"http://127.0.0.1:{self.port}"
        return session.client(service, endpoint_url=url, config=config)

    def variables(self, region: str, url: str | None = None) -> dict[str, str]:
        """What points an AWS client to the emulator. url: where it is; by default on loopback."""
        return {
            "AWS_ENDPOINT_URL": url or f"http://127.0.0.1:{self.port}",
            # Its file of settings may say otherwise, and calls would go to the real AWS.
            "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "false",
            "AWS_ACCESS_KEY_ID": self.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": self.credentials.secret_key,
            "AWS_DEFAULT_REGION": region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def mark(self, name: str) -> str:
        """What every process of a job or an endpoint carries, by which orphans are found.

        The key is the state directory's own: another emulator's work is never taken for ours.
        """
        return f"{self.credentials.access_key}/{name}"

    def objects(self, uri: str, region: str) -> list[tuple[str, str, int]]:
        """(bucket, key, bytes) of every object under an S3 prefix, sorted by key.

        Raises botocore's ClientError for a bucket that does not exist.
        """
        bucket, prefix = split_uri(uri)
        pages = self.client("s3", region).get_paginator("list_objects_v2")
        return sorted(
            (bucket, entry["Key"], entry["Size"])
            for page in pages.paginate(Bucket=bucket, Prefix=prefix)
            for entry in page.get("Contents", [])
            if not entry["Key"].endswith("/")
        )


def name_in(region: str, name: str) -> str:
    """What a job or an endpoint of a region is called here: other regions may have the name, too.

    It names a directory. A name that AWS takes has no dot.
    """
    return name if region == REGION else f"{name}.{region}"


def split_uri(uri: str) -> tuple[str, str]:
    """(bucket, key or prefix) of an s3:// URI."""
    bucket, _, key = uri.partition("://")[2].partition("/")
    return bucket, key


# What a learner set for pip and for certificates must hold on an instance too.
PASSED_ON = ("PIP_", "UV_", "SSL_CERT", "REQUESTS_CA_BUNDLE", "LANG", "LC_", "TZ")
PACKAGES = Path(__file__).parents[2]  # what holds this package


def base_environment() -> dict[str, str]:
    """The variables with which every process starts that runs a job or serves a model."""
    return {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)} | {
        "PATH": os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]]),
        "HOME": os.environ.get("HOME", "/"),
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
