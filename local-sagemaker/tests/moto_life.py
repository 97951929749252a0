"""One life of an endpoint's moto after another, in one process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import boto3
import moto.logs.models
import pytest
from moto import mock_aws
from moto.cloudwatch.models import CloudWatchBackend
from moto.s3.models import S3Backend

from local_sagemaker.moto_services.state import MotoState

PATCHED = (
    (moto.logs.models, "LogStream"),
    (CloudWatchBackend, "metric_data"),
    *((S3Backend, name) for name in ("get_object", "put_object", "create_bucket", "delete_bucket")),
)


class Life:
    """moto, empty but for what was saved in `directory`, until the end of a `with`."""

    def __init__(self, directory: Path) -> None:
        self.state = MotoState(directory)
        self.state.load()
        self.s3 = self.client("s3")

    def client(self, service: str):
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        return boto3.client(service, region_name="us-east-1", **keys)

    def save(self) -> None:
        self.state.changed()
        self.state.save()


def leave_moto_as_it_was(patch: pytest.MonkeyPatch) -> None:
    """Undo, when `patch` ends, what an endpoint in this process does to moto's classes."""
    for place, name in PATCHED:
        patch.setattr(place, name, getattr(place, name, None), raising=False)


def lives(directory: Path):
    """Each `with begin() as now:` is another life of the same endpoint."""

    @contextlib.contextmanager
    def begin():
        with mock_aws(), pytest.MonkeyPatch.context() as patch:
            leave_moto_as_it_was(patch)  # it starts from nothing, as a process does
            one = Life(directory)
            yield one
            one.state.objects.close()

    return begin
