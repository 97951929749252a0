"""moto's buckets, which hold no objects of their own: where moto looks into one, it sees ours."""

from __future__ import annotations

import dataclasses

from moto.s3.models import FakeBucket, S3Backend

from local_sagemaker.s3.store import NULL, ObjectStore, Stored

_delete_bucket = S3Backend.delete_bucket


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

    def delete_bucket(self: S3Backend, bucket_name: str) -> FakeBucket | None:
        with store.lock:
            if store.has_any(bucket_name):
                return None  # moto's word for "not empty"
            gone = _delete_bucket(self, bucket_name)
            store.forget_bucket(bucket_name)
            return gone

    S3Backend.get_object = get_object
    S3Backend.put_object = put_object
    S3Backend.delete_bucket = delete_bucket
