"""moto's buckets, which hold no objects of their own: where moto looks into one, it sees ours."""

from __future__ import annotations

import dataclasses
import re

from moto.s3.exceptions import InvalidBucketName
from moto.s3.models import FakeBucket, S3Backend, s3_backends

from local_sagemaker.s3.store import NULL, ObjectStore, Stored

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, read 2026-11-24
NAME = re.compile(r"(?!.*\.\.)(?!(\d+\.){3}\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

_create_bucket, _delete_bucket = S3Backend.create_bucket, S3Backend.delete_bucket


@dataclasses.dataclass
class Read:
    """An object as CloudFormation reads a template from it: `value` is its bytes."""

    store: ObjectStore
    found: Stored

    @property
    def value(self) -> bytes:
        return b"".join(self.store.blobs.read(self.found.segments, 0, self.found.size))


def hold(store: ObjectStore) -> None:
    """From now on moto's own services find S3's objects in this store."""

    def get_object(self: S3Backend, bucket_name: str, key_name: str, *_, **__) -> Read | None:
        self.get_bucket(bucket_name)
        found = store.latest(bucket_name, key_name)
        return Read(store, found) if found and not found.marker else None

    def put_object(self: S3Backend, bucket_name: str, key_name: str, value: bytes, **_) -> None:
        bucket = self.get_bucket(bucket_name)
        data = value.encode() if isinstance(value, str) else value
        segment = store.blobs.write([data])
        store.put(bucket_name, key_name, bucket.is_versioned, [segment], NULL, {})

    def create_bucket(self: S3Backend, bucket_name: str, *args, **more) -> FakeBucket:
        if not NAME.fullmatch(bucket_name):
            raise InvalidBucketName
        return _create_bucket(self, bucket_name, *args, **more)

    def delete_bucket(self: S3Backend, bucket_name: str) -> FakeBucket | None:
        with store.lock:
            if store.has_any(bucket_name):
                return None  # moto's word for "not empty"
            gone = _delete_bucket(self, bucket_name)
            store.forget_bucket(bucket_name)
            return gone

    S3Backend.get_object = get_object
    S3Backend.put_object = put_object
    S3Backend.create_bucket = create_bucket
    S3Backend.delete_bucket = delete_bucket


def find_all() -> None:
    """Tell moto which bucket is whose: it keeps that beside its buckets, and not on disk."""
    s3_backends.bucket_accounts = {
        name: (partition, account)
        for account, partitions in s3_backends.items()
        for partition, backend in partitions.items()
        for name in backend.buckets
    }
