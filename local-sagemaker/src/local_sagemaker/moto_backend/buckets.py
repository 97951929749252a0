"""moto's buckets, which hold no objects of their own: where moto looks into one, it sees ours."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from moto.s3.exceptions import InvalidBucketName
from moto.s3.models import FakeBucket, S3Backend, s3_backends

from local_sagemaker.moto_backend.patch import patch
from local_sagemaker.s3.store import ObjectStore

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html, read 2026-11-24
NAME = re.compile(r"(?!.*\.\.)(?!(\d+\.){3}\d+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_store: ObjectStore | None = None  # without one, moto keeps its own objects


def use(store: ObjectStore | None) -> None:
    """From now on moto's own services find S3's objects in this store."""
    global _store
    _store = store


@patch(S3Backend, "get_object")
def _get_object(
    moto_get: Callable, self: S3Backend, bucket_name: str, key_name: str, *args: Any, **kwargs: Any
) -> Any:
    if _store is None:
        return moto_get(self, bucket_name, key_name, *args, **kwargs)
    self.get_bucket(bucket_name)
    stored = _store.latest(bucket_name, key_name)
    if stored is None or stored.marker:
        return None
    # As CloudFormation reads a template from it.
    return SimpleNamespace(value=b"".join(_store.blobs.read(stored.segments, 0, stored.size)))


@patch(S3Backend, "create_bucket")
def _create_bucket(
    moto_create: Callable, self: S3Backend, bucket_name: str, *args: Any, **kwargs: Any
) -> FakeBucket:
    if _store and not NAME.fullmatch(bucket_name):
        raise InvalidBucketName
    return moto_create(self, bucket_name, *args, **kwargs)


@patch(S3Backend, "delete_bucket")
def _delete_bucket(moto_delete: Callable, self: S3Backend, bucket_name: str) -> FakeBucket | None:
    if _store is None:
        return moto_delete(self, bucket_name)
    with _store.lock:
        if _store.has_any(bucket_name):
            return None  # moto's word for "not empty"
        bucket = moto_delete(self, bucket_name)
        _store.forget_bucket(bucket_name)
        return bucket


def restore_owners() -> None:
    """Tell moto which bucket is whose: it keeps that beside its buckets, and not on disk."""
    s3_backends.bucket_accounts = {
        name: (partition, account)
        for account, partitions in s3_backends.items()
        for partition, backend in partitions.items()
        for name in backend.buckets
    }
