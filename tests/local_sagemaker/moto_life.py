"""One life of an endpoint's moto after another, in one process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import boto3
from moto import mock_aws

from local_sagemaker.server.moto_state import MotoState


class Life:
    """moto, empty but for what was saved in `directory`, until the end of a `with`."""

    def __init__(self, directory: Path) -> None:
        self.state = MotoState(directory)
        self.state.load()
        self.s3 = self.client("s3")

    def client(self, service: str):
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        return boto3.client(service, region_name="us-east-1", **keys)

    def save(self, service: str = "s3") -> None:
        self.state.changed(service)
        self.state.save()

    def put(self, bucket: str, key: str, body: bytes, **more) -> None:
        self.s3.put_object(Bucket=bucket, Key=key, Body=body, **more)

    def get(self, bucket: str, key: str, **more) -> bytes:
        return self.s3.get_object(Bucket=bucket, Key=key, **more)["Body"].read()

    def blobs(self) -> list[bytes]:
        return sorted(path.read_bytes() for path in self.state.blobs.iterdir())


def lives(directory: Path):
    """Each `with begin() as now:` is another life of the same endpoint."""

    @contextlib.contextmanager
    def begin():
        with mock_aws():  # it starts from nothing, as a process does
            yield Life(directory)

    return begin
