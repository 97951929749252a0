"""What lies in the seat's buckets, and buckets that no stack holds any more."""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from workshop.account.prices import usd_per_month as month
from workshop.cleaning.seat_stacks import held_buckets
from workshop.cleaning.things import Finding, NotDeleted, Stranger, Thing, as_dict

BATCH = 1000  # most keys of one DeleteObjects
DEFAULT_REGION = "us-east-1"  # S3 names every other region of a bucket, and not this one


class _Buckets:
    """The seat's buckets in the session's region."""

    kind: str

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("s3")

    def named(self) -> Finding:
        """Every bucket whose name begins like the seat's."""
        found = Finding()
        for name in self._names():
            region = self._region(name)
            if region == self.session.region:
                found.sort(self.session.seat, Thing(self.kind, name), self._tags(name))
            else:
                reason = f"it is in {region}: clean that region too, with AWS_DEFAULT_REGION"
                found.strangers.append(Stranger(self.kind, name, reason))
        return found

    def _names(self) -> list[str]:
        listed = self.client.list_buckets()["Buckets"]
        return [one["Name"] for one in listed if one["Name"].startswith(self.session.job_prefix)]

    def _region(self, name: str) -> str:
        found = self.client.get_bucket_location(Bucket=name)
        return found.get("LocationConstraint") or DEFAULT_REGION

    def _tags(self, name: str) -> dict[str, str]:
        try:
            return as_dict(self.client.get_bucket_tagging(Bucket=name)["TagSet"])
        except ClientError as error:
            if error.response["Error"]["Code"] == "NoSuchTagSet":
                return {}
            raise


class Objects(_Buckets):
    """The objects of each bucket: every version, delete markers, uploads that were broken off."""

    kind = "objects"

    def find(self) -> Finding:
        named = self.named()
        ours = [self._counted(one.name) for one in named.ours]
        # A bucket that is a stranger is named once, among the buckets.
        return Finding([one for one in ours if one.count])

    def delete(self, thing: Thing) -> None:
        for batch in self._batches(thing.name):
            answer = self.client.delete_objects(
                Bucket=thing.name, Delete={"Objects": batch, "Quiet": True}
            )
            if errors := answer.get("Errors"):
                first = errors[0]
                raise NotDeleted(
                    f"{len(errors)} objects were refused, the first {first.get('Key')}: "
                    f"{first.get('Code')}: {first.get('Message')}"
                )
        for one in self._uploads(thing.name):
            self._abort(thing.name, one)

    def _counted(self, bucket: str) -> Thing:
        versions = list(self._versions(bucket))
        uploads = len(list(self._uploads(bucket)))
        size = sum(one.get("Size", 0) for one in versions)
        note = f"{uploads} unfinished uploads, of unknown size" if uploads else ""
        count = len(versions) + uploads
        return Thing(self.kind, bucket, count, size, month("s3", size), note)

    def _versions(self, bucket: str) -> Iterator[dict]:
        for page in self.client.get_paginator("list_object_versions").paginate(Bucket=bucket):
            yield from page.get("Versions", [])
            yield from page.get("DeleteMarkers", [])

    def _uploads(self, bucket: str) -> Iterator[dict]:
        for page in self.client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket):
            yield from page.get("Uploads", [])

    def _batches(self, bucket: str) -> Iterator[list[dict]]:
        batch: list[dict] = []
        # All names first: S3 need not go on with a list whose entries vanish meanwhile.
        for one in list(self._versions(bucket)):
            batch.append({"Key": one["Key"], "VersionId": one["VersionId"]})
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch

    def _abort(self, bucket: str, upload: dict) -> None:
        try:
            self.client.abort_multipart_upload(
                Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
            )
        except self.client.exceptions.NoSuchUpload:
            return


class Buckets(_Buckets):
    """Buckets of the seat that no stack holds: a stack that was replaced or lost left them."""

    kind = "buckets"

    def find(self) -> Finding:
        named = self.named()
        held = held_buckets(self.session) if named.ours else set()
        return Finding([one for one in named.ours if one.name not in held], named.strangers)

    def delete(self, thing: Thing) -> None:
        try:
            self.client.delete_bucket(Bucket=thing.name)
        except self.client.exceptions.NoSuchBucket:
            return
