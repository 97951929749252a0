"""S3's calls on objects, as functions from a request's members to a result's.

Members are those of botocore's model of S3. What S3 has and this lacks (access lists and tags of
single objects, locks, S3 Select, restoring) is refused, here or by protocol.py.
"""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import hashlib
import re
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, unquote

from moto.s3.models import FakeBucket
from werkzeug.http import parse_range_header

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.s3 import listing
from local_sagemaker.s3.blobs import Segment
from local_sagemaker.s3.listing import OWNER, Members, get_bucket, modified
from local_sagemaker.s3.store import NULL, ObjectStore, Stored

MAX_OBJECT = 5 * 1024**3  # bytes; S3's limit for one PUT, and for one part
MIN_PART = 5 * 1024**2  # bytes; of every part but the last
MAX_PARTS = 10_000
MAX_DELETED = 1000  # keys in one DeleteObjects
MAX_KEY = 1024  # bytes
HEADERS = (
    *("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"),
)
HEADER_VALUE = re.compile("[\t -~\xa0-\xff]*")  # a line end would begin another header
ENCRYPTION = ("ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled")
# What a client states about an object, and gets back.
STATED = (*HEADERS, *ENCRYPTION, "StorageClass", "Metadata")
ACCEPTED_ACLS = (None, "", "private", "bucket-owner-full-control", "bucket-owner-read")


class ObjectCalls:
    """The calls, over a store. `by_name`: operation -> the function that answers it."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

        self.by_name: dict[str, Callable[[Members], Members]] = {
            "PutObject": self.put,
            "GetObject": partial(self.head, body=True),
            "HeadObject": self.head,
            "GetObjectTagging": self.get_tagging,
            "DeleteObject": self.delete,
            "DeleteObjects": self.delete_many,
            "CopyObject": self.copy,
            "CreateMultipartUpload": self.begin_upload,
            "UploadPart": self.upload_part,
            "UploadPartCopy": self.copy_part,
            "CompleteMultipartUpload": self.complete_upload,
            "AbortMultipartUpload": self.abort_upload,
            "ListMultipartUploads": self.list_uploads,
            "ListObjects": partial(listing.list_objects, store),
            "ListObjectsV2": partial(listing.list_objects_v2, store),
            "ListObjectVersions": partial(listing.list_versions, store),
        }

    # Storing

    def put(self, request: Members) -> Members:
        get_bucket(request)
        self._check_new(request)
        segment, etag = self.store.blobs.write(request["Body"])
        return _put_result(self._store(request, [segment], etag, _fields(request)))

    def _check_new(self, request: Members) -> None:
        if len(request["Key"].encode()) > MAX_KEY:
            raise AwsError("KeyTooLongError", "Your key is too long")
        if request.get("ACL") not in ACCEPTED_ACLS:
            raise AwsError(
                "AccessControlListNotSupported",
                f"ACL {request['ACL']}: the emulator keeps no access lists of objects; only "
                "its own keys reach them. Leave ACL out.",
            )
        if request.get("Tagging"):
            message = "Tagging: the emulator keeps no tags of objects. Leave it out."
            raise AwsError("NotImplemented", message, 501)
        self._check_condition(request)

    def _check_condition(self, request: Members) -> None:
        """If-Match and If-None-Match of a request that stores an object."""
        match, none_match = request.get("IfMatch"), request.get("IfNoneMatch")
        if not (match or none_match):
            return
        stored = self.store.latest(request["Bucket"], request["Key"])
        stored = None if stored is None or stored.marker else stored
        if match and stored is None:
            raise _no_key(request["Key"])
        if stored and (none_match or not _matches(match or "", stored)):
            raise _precondition("If-Match" if match else "If-None-Match")

    def _store(
        self,
        request: Members,
        segments: list[Segment],
        etag: str,
        fields: Members,
        upload: str | None = None,
    ) -> Stored:
        """Make the version. If that fails, what was written is removed, except for uploads."""
        try:
            with self.store.lock:  # the bucket, and what is there, as they are now
                bucket = get_bucket(request)
                self._check_condition(request)
                return self.store.put(
                    *(bucket.name, request["Key"], bucket.is_versioned, segments, etag, fields),
                    upload=upload,
                )
        except BaseException:
            if upload is None:
                self.store.blobs.remove(segments)
            raise

    def copy(self, request: Members) -> Members:
        source = self._source(request)
        self._check_new(request)
        replace = request.get("MetadataDirective") == "REPLACE"
        stated = _fields(request)
        changed = {name: stated[name] for name in (*ENCRYPTION, "StorageClass") if name in stated}
        fields = stated if replace else source.fields | changed
        segments = self.store.blobs.link(source.segments)
        copy = self._store(request, segments, source.etag, fields)
        copied = {"ETag": copy.quoted_etag, "LastModified": modified(copy)}
        result = {"CopyObjectResult": copied, "CopySourceVersionId": _version_id(source)}
        return _put_result(copy) | result

    def _source(self, request: Members) -> Stored:
        """The object that CopySource names, if the request's conditions hold of it."""
        bucket, key, version = _source_parts(request)
        source = self._find({"Bucket": bucket, "Key": key, "VersionId": version})
        conditions = {
            name: request.get(f"CopySource{name}")
            for name in ("IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince")
        }
        try:
            _check_read_conditions(conditions, source)
        except AwsError as error:
            if error.status != 304:
                raise
            raise _precondition("x-amz-copy-source-If-None-Match") from error
        return source

    # Reading

    def _find(self, request: Members) -> Stored:
        bucket = get_bucket(request)
        if version := request.get("VersionId"):
            stored = self.store.version(bucket.name, request["Key"], version)
            if stored is None:
                raise AwsError("NoSuchVersion", "The specified version does not exist.", 404)
            if stored.marker:
                raise AwsError(
                    "MethodNotAllowed", "The specified method is not allowed: a delete marker.", 405
                )
            return stored
        stored = self.store.latest(bucket.name, request["Key"])
        if stored is None or stored.marker:
            raise _no_key(request["Key"])
        return stored

    def head(self, request: Members, body: bool = False) -> Members:
        """HeadObject's members and, with body, GetObject's: Body iterates over the bytes."""
        with self.store.lock:  # until the files are held, none may go
            stored = self._find(request)
            _check_read_conditions(request, stored)
            start, length = 0, stored.size
            result: Members = {}
            if request.get("PartNumber"):
                message = "PartNumber: the emulator reads ranges of bytes, and no parts. Use Range."
                raise AwsError("NotImplemented", message, 501)
            if byte_range := _range(request.get("Range"), stored.size):
                start, length = byte_range
                shown = f"bytes {start}-{start + length - 1}/{stored.size}"
                result["ContentRange"] = shown
            if body:
                result["Body"] = self.store.blobs.read(stored.segments, start, length)
        result |= {name: stored.fields.get(name) for name in STATED}
        result |= {
            "ETag": stored.quoted_etag,
            "LastModified": modified(stored),
            "AcceptRanges": "bytes",
            "ContentLength": length,
            "ContentType": stored.fields.get("ContentType", "binary/octet-stream"),
            "VersionId": _version_id(stored),
        }
        if result["StorageClass"] == "STANDARD":
            result["StorageClass"] = None
        if "Expires" in stored.fields:
            result["Expires"] = datetime.datetime.fromtimestamp(
                stored.fields["Expires"], datetime.UTC
            )
        for name in HEADERS:
            if value := request.get(f"Response{name}"):
                if not HEADER_VALUE.fullmatch(value):
                    raise AwsError("InvalidArgument", f"Response{name} is not a header's value.")
                result[name] = value
        return result

    def get_tagging(self, request: Members) -> Members:
        """No tags: nobody can give any. The AWS CLI asks before it copies a large object."""
        return {"TagSet": [], "VersionId": _version_id(self._find(request))}

    # Deleting

    def delete(self, request: Members) -> Members:
        with self.store.lock:
            return self._delete(get_bucket(request), request["Key"], request.get("VersionId"))

    def _delete(self, bucket: FakeBucket, key: str, version: str | None) -> Members:
        if version:
            gone = self.store.remove(bucket.name, key, version)
            marker = True if gone and gone.marker else None
            return {"VersionId": version, "DeleteMarker": marker}
        if not bucket.versioning_status:
            self.store.remove(bucket.name, key, NULL)
            return {}
        made = self.store.put(bucket.name, key, bucket.is_versioned, [], "", {}, marker=True)
        return {"VersionId": made.version, "DeleteMarker": True}

    def delete_many(self, request: Members) -> Members:
        objects = request.get("Delete", {}).get("Objects", [])
        if not 1 <= len(objects) <= MAX_DELETED:
            raise _malformed(f"1 to {MAX_DELETED} objects.")
        deleted = []
        for item in objects:
            version = item.get("VersionId")
            with self.store.lock:
                result = self._delete(get_bucket(request), item["Key"], version)
            entry: Members = {"Key": item["Key"], "VersionId": version}
            if result.get("DeleteMarker"):
                entry |= {"DeleteMarker": True, "DeleteMarkerVersionId": result["VersionId"]}
            deleted.append(entry)
        return {} if request["Delete"].get("Quiet") else {"Deleted": deleted}

    # Uploads in parts

    def begin_upload(self, request: Members) -> Members:
        with self.store.lock:
            bucket = get_bucket(request)
            self._check_new(request)
            begun = self.store.begin_upload(bucket.name, request["Key"], _fields(request))
        result = {"Bucket": bucket.name, "Key": request["Key"], "UploadId": begun.key}
        return result | {name: begun.fields["fields"].get(name) for name in ENCRYPTION}

    def _upload(self, request: Members) -> Stored:
        get_bucket(request)
        upload, named = self.store.upload(request["UploadId"]), (request["Bucket"], request["Key"])
        if upload is None or (upload.fields["bucket"], upload.fields["key"]) != named:
            raise AwsError(
                "NoSuchUpload",
                "The specified upload does not exist. The upload ID may be invalid, or the "
                "upload may have been aborted or completed.",
                404,
            )
        return upload

    def upload_part(self, request: Members) -> Members:
        self._check_part(request)
        segment, etag = self.store.blobs.write(request["Body"])
        return {"ETag": self._store_part(request, segment, etag).quoted_etag}

    def copy_part(self, request: Members) -> Members:
        self._check_part(request)
        source = self._source(request)
        start, length = 0, source.size
        if header := request.get("CopySourceRange"):
            start, length = _range(header, source.size) or (0, 0)
            if not length:
                raise AwsError("InvalidArgument", f"The range is not valid: {header}")
        with contextlib.closing(self.store.blobs.read(source.segments, start, length)) as pieces:
            segment, etag = self.store.blobs.write(pieces)
        part = self._store_part(request, segment, etag)
        result = {"ETag": part.quoted_etag, "LastModified": modified(part)}
        return {"CopyPartResult": result, "CopySourceVersionId": _version_id(source)}

    def _check_part(self, request: Members) -> None:
        if not 1 <= request["PartNumber"] <= MAX_PARTS:
            raise AwsError(
                "InvalidArgument",
                f"Part number must be an integer between 1 and {MAX_PARTS}, inclusive",
            )
        self._upload(request)

    def _store_part(self, request: Members, segment: Segment, etag: str) -> Stored:
        try:
            with self.store.lock:
                upload = self._upload(request)
                return self.store.put_part(upload.key, request["PartNumber"], segment, etag)
        except BaseException:
            self.store.blobs.remove([segment])
            raise

    def complete_upload(self, request: Members) -> Members:
        chosen = (request.get("MultipartUpload") or {}).get("Parts", [])
        with self.store.lock:
            upload = self._upload(request)
            self._check_condition(request)
            parts = self._chosen_parts(upload, chosen)
            digests = b"".join(bytes.fromhex(part.etag) for part in parts)
            etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"
            segments = [segment for part in parts for segment in part.segments]
            fields = upload.fields["fields"]
            stored = self._store(request, segments, etag, fields, upload=upload.key)
        bucket, key = request["Bucket"], request["Key"]
        result = {"Bucket": bucket, "Key": key, "Location": f"/{bucket}/{quote(key)}"}
        return _put_result(stored) | result

    def _chosen_parts(self, upload: Stored, chosen: list[Members]) -> list[Stored]:
        if not chosen:
            raise _malformed("an upload is completed with at least one part.")
        numbers = [part["PartNumber"] for part in chosen]
        if numbers != sorted(set(numbers)):
            raise AwsError(
                "InvalidPartOrder",
                "The list of parts was not in ascending order. Parts list must be specified in "
                "order by part number.",
            )
        uploaded = {int(part.key): part for part in self.store.parts(upload.key)}
        parts = []
        for item in chosen:
            part = uploaded.get(item["PartNumber"])
            if part is None or item.get("ETag", "").strip('"') != part.etag:
                raise AwsError(
                    "InvalidPart",
                    "One or more of the specified parts could not be stored. The part might not "
                    "have been uploaded, or the specified entity tag might not have matched the "
                    "part's entity tag.",
                )
            parts.append(part)
        if any(part.size < MIN_PART for part in parts[:-1]):
            raise AwsError(
                "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"
            )
        return parts

    def abort_upload(self, request: Members) -> Members:
        with self.store.lock:
            self.store.end_upload(self._upload(request).key)
        return {}

    def list_uploads(self, request: Members) -> Members:
        """All of them, in one page."""
        bucket, prefix = get_bucket(request), request.get("Prefix") or ""
        encode = listing.encoder(request)
        return {
            "Bucket": bucket.name,
            "Prefix": prefix,
            "MaxUploads": 1000,
            "IsTruncated": False,
            "EncodingType": request.get("EncodingType"),
            "Uploads": [
                {
                    "Key": encode(upload.fields["key"]),
                    "UploadId": upload.key,
                    "Initiated": modified(upload),
                    "StorageClass": "STANDARD",
                    "Owner": OWNER,
                }
                for upload in self.store.uploads(bucket.name, prefix)
            ],
        }


def _fields(request: Members) -> Members:
    """What a request states about an object, as the store keeps it."""
    fields = {name: request[name] for name in STATED if request.get(name) not in (None, {})}
    if "Metadata" in fields:
        fields["Metadata"] = {key.lower(): value for key, value in fields["Metadata"].items()}
    encodings = fields.pop("ContentEncoding", "").split(",")
    if encoding := ",".join(item for item in encodings if item.strip() != "aws-chunked"):
        fields["ContentEncoding"] = encoding
    if expires := request.get("Expires"):
        if isinstance(expires, str):
            expires = email.utils.parsedate_to_datetime(expires)
        fields["Expires"] = expires.timestamp()
    return fields


def _put_result(stored: Stored) -> Members:
    result = {"ETag": stored.quoted_etag, "VersionId": _version_id(stored)}
    return result | {name: stored.fields.get(name) for name in ENCRYPTION}


def _source_parts(request: Members) -> tuple[str, str, str | None]:
    """(bucket, key, version) that CopySource names."""
    text, _, version = request["CopySource"].partition("?versionId=")
    bucket, _, key = unquote(text).removeprefix("/").partition("/")
    if not (bucket and key):
        raise AwsError("InvalidArgument", "Copy Source must mention the source bucket and key")
    return bucket, key, version or None


def _check_read_conditions(request: Members, stored: Stored) -> None:
    """Raise AwsError (412, or 304: not modified), in the order that RFC 9110 gives."""
    modified = int(stored.modified)
    if match := request.get("IfMatch"):
        if not _matches(match, stored):
            raise _precondition("If-Match")
    elif (since := request.get("IfUnmodifiedSince")) and modified > since.timestamp():
        raise _precondition("If-Unmodified-Since")
    if none_match := request.get("IfNoneMatch"):
        if _matches(none_match, stored):
            raise AwsError("NotModified", "Not Modified", 304)
    elif (since := request.get("IfModifiedSince")) and modified <= since.timestamp():
        raise AwsError("NotModified", "Not Modified", 304)


def _matches(tags: str, stored: Stored) -> bool:
    etags = [tag.strip().removeprefix("W/").strip('"') for tag in tags.split(",")]
    return "*" in etags or stored.etag in etags


def _range(header: str | None, size: int) -> tuple[int, int] | None:
    """(first, how many) of a Range header; None if it is not one range of bytes.

    Raises AwsError (InvalidRange) for one outside the object.
    """
    ranges = parse_range_header(header)
    if ranges is None or ranges.units != "bytes" or len(ranges.ranges) != 1:
        return None  # HTTP says to ignore what is not a range at all
    start, end = ranges.ranges[0]
    start = max(0, size + start) if start < 0 else start
    if start >= size:
        raise AwsError("InvalidRange", "The requested range is not satisfiable", 416)
    return start, min(end or size, size) - start


def _version_id(stored: Stored) -> str | None:
    return None if stored.version == NULL else stored.version


def _no_key(key: str) -> AwsError:
    return AwsError("NoSuchKey", f"The specified key does not exist: {key}", 404)


def _malformed(expected: str) -> AwsError:
    message = "The XML you provided did not validate against our published schema"
    return AwsError("MalformedXML", f"{message}: {expected}")


def _precondition(name: str) -> AwsError:
    message = f"At least one of the pre-conditions you specified did not hold: {name}"
    return AwsError("PreconditionFailed", message, 412)
