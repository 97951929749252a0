"""One life of an emulator's moto after another, in one process."""

import contextlib
from pathlib import Path

import boto3
import moto.logs.models as moto_logs
from moto import mock_aws

from local_sagemaker.moto_backend import buckets, logs
from local_sagemaker.moto_backend.state import MotoState


class Life:
    """moto, empty but for what was saved in `directory`, until the end of a `with`."""

    def __init__(self, directory: Path) -> None:
        self.state = MotoState(directory)
        self.state.load()
        self.save = self.state.save
        self.s3 = self.client("s3")

    def client(self, service: str):
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        return boto3.client(service, region_name="us-east-1", **keys)


def give_moto_its_storage_back() -> None:
    """Other tests use moto in this process."""
    buckets.use(None)
    logs._journal, moto_logs.LogStream = None, logs._MotoLogStream


@contextlib.contextmanager
def life_in(directory: Path):
    """Each `with` is another life of the same emulator."""
    with mock_aws():
        life = Life(directory)
        try:
            yield life
        finally:
            life.state.objects.index.close()
            give_moto_its_storage_back()
