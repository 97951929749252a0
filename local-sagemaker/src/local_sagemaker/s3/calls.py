"""S3's calls on objects, as functions from a request's members to an answer's.

Members are those of botocore's model of S3. What S3 has and this lacks (access lists and tags of
single objects, locks, S3 Select, restoring) is refused, here or by protocol.py.
"""

from __future__ import annotations

import datetime
import email.utils
import hashlib
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, s3_backends

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.s3 import listing
from local_sagemaker.s3.blobs import Segment
from local_sagemaker.s3.bodies import Body
from local_sagemaker.s3.listing import OWNER, modified
from local_sagemaker.s3.store import NULL, ObjectStore, Stored, Upload

OBJECT_LIMIT = 5 * 1024**3  # bytes; S3's limit for one PUT, and for one part
PART_MINIMUM = 5 * 1024**2  # bytes; of every part but the last
MOST_PARTS = 10_000
MOST_DELETED = 1000  # keys in one DeleteObjects
KEY_LIMIT = 1024  # bytes
HEADERS = (
    *("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"),
)
HEADER_VALUE = re.compile("[\t -~\xa0-\xff]*")  # a line end would begin another header
ENCRYPTION = ("ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled")
# What a client says of an object, and hears again.
SYSTEM = (*HEADERS, *ENCRYPTION, "StorageClass", "WebsiteRedirectLocation", "Metadata")
OWN_ACL = (None, "", "private", "bucket-owner-full-control", "bucket-owner-read")

Answer = dict[str, Any]


class NotModified(AwsError):
    def __init__(self) -> None:
        super().__init__("NotModified", "Not Modified", 304)


def bucket_of(request: Answer) -> FakeBucket:
    """The bucket that a request names. Raises AwsError (NoSuchBucket, AccessDenied)."""
    if request.get("ExpectedBucketOwner", DEFAULT_ACCOUNT_ID) != DEFAULT_ACCOUNT_ID:
        raise AwsError("AccessDenied", "Access Denied: the bucket has another owner.", 403)
    try:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket(request["Bucket"])
    except S3ClientError as error:
        raise AwsError("NoSuchBucket", "The specified bucket does not exist", 404) from error


class ObjectCalls:
    """The calls, over a store. `by_name`: operation -> what answers it."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

        def listed(by: Callable[..., Answer]) -> Callable[[Answer], Answer]:
            return lambda request: by(store, bucket_of(request), request)

        self.by_name: dict[str, Callable[[Answer], Answer]] = {
            "PutObject": self.put,
            "GetObject": self.get,
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
            "ListParts": self.list_parts,
            "ListMultipartUploads": self.list_uploads,
            "ListObjects": listed(listing.objects),
            "ListObjectsV2": listed(listing.objects_v2),
            "ListObjectVersions": listed(listing.versions),
        }

    # Storing

    def put(self, request: Answer) -> Answer:
        bucket_of(request)
        self._check_new(request)
        body: Body = request["Body"]
        segment = self.store.blobs.write(body)
        return _put_answer(self._store(request, [segment], body.etag, _fields(request)))

    def _check_new(self, request: Answer) -> None:
        if len(request["Key"].encode()) > KEY_LIMIT:
            raise AwsError("KeyTooLongError", "Your key is too long")
        if request.get("ACL") not in OWN_ACL:
            raise AwsError(
                "AccessControlListNotSupported",
                f"ACL {request['ACL']}: the emulator keeps no access lists of objects; only "
                "its own keys reach them. Leave ACL out.",
            )
        if request.get("Tagging"):
            raise AwsError(
                "NotImplemented",
                "Tagging: the emulator keeps no tags of objects. Leave it out.",
                501,
            )
        self._check_condition(request)

    def _check_condition(self, request: Answer) -> None:
        """If-Match and If-None-Match of a request that stores an object."""
        wanted, unwanted = request.get("IfMatch"), request.get("IfNoneMatch")
        if not (wanted or unwanted):
            return
        found = self.store.latest(request["Bucket"], request["Key"])
        found = None if found is None or found.marker else found
        if wanted and found is None:
            raise _no_key(request["Key"])
        if (found and wanted and not _matches(wanted, found)) or (unwanted and found):
            raise _precondition("If-Match" if wanted else "If-None-Match")

    def _store(
        self, request: Answer, segments: list[Segment], etag: str, fields: Answer, **more: Any
    ) -> Stored:
        """Make the version. What was written is removed if that fails."""
        try:
            with self.store.lock:  # the bucket, and what is there, as they are now
                bucket = bucket_of(request)
                self._check_condition(request)
                return self.store.put(
                    bucket.name, request["Key"], bucket.is_versioned, segments, etag, fields, **more
                )
        except BaseException:
            if not more:
                self.store.blobs.remove(segments)
            raise

    def copy(self, request: Answer) -> Answer:
        source = self._source(request)
        self._check_new(request)
        replace = request.get("MetadataDirective") == "REPLACE"
        bucket, key, version = _source_parts(request)
        if (bucket, key) == (request["Bucket"], request["Key"]) and not (replace or version):
            raise AwsError(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself "
                "without changing the object's metadata, storage class, website redirect "
                "location or encryption attributes.",
            )
        asked = _fields(request)
        given = {name: asked[name] for name in (*ENCRYPTION, "StorageClass") if name in asked}
        fields = asked if replace else source.fields | given
        segments = self.store.blobs.link(source.segments)
        found = self._store(request, segments, source.etag, fields)
        result = {"ETag": f'"{found.etag}"', "LastModified": modified(found)}
        told = {"CopyObjectResult": result, "CopySourceVersionId": _version_id(source)}
        return _put_answer(found) | told

    def _source(self, request: Answer) -> Stored:
        """The object that CopySource names, if the request's conditions hold of it."""
        bucket, key, version = _source_parts(request)
        found = self._find({"Bucket": bucket, "Key": key, "VersionId": version})
        conditions = {
            name: request.get(f"CopySource{name}")
            for name in ("IfMatch", "IfNoneMatch", "IfModifiedSince", "IfUnmodifiedSince")
        }
        try:
            _check_read_conditions(conditions, found)
        except NotModified as error:
            raise _precondition("x-amz-copy-source-If-None-Match") from error
        return found

    # Reading

    def _find(self, request: Answer) -> Stored:
        bucket = bucket_of(request)
        if version := request.get("VersionId"):
            found = self.store.version(bucket.name, request["Key"], version)
            if found is None:
                raise AwsError("NoSuchVersion", "The specified version does not exist.", 404)
            if found.marker:
                raise AwsError(
                    "MethodNotAllowed", "The specified method is not allowed: a delete marker.", 405
                )
            return found
        found = self.store.latest(bucket.name, request["Key"])
        if found is None or found.marker:
            raise _no_key(request["Key"])
        return found

    def head(self, request: Answer) -> Answer:
        """All of GetObject's answer but the Body."""
        return self._read(request, body=False)

    def get(self, request: Answer) -> Answer:
        """GetObject's members; Body iterates over the bytes."""
        return self._read(request, body=True)

    def _read(self, request: Answer, body: bool) -> Answer:
        with self.store.lock:  # until the files are held, none may go
            found = self._find(request)
            _check_read_conditions(request, found)
            start, length, told = _part_or_range(request, found)
            if body:
                told["Body"] = self.store.blobs.read(found.segments, start, length)
        told |= {name: found.fields.get(name) for name in SYSTEM}
        told |= {
            "ETag": f'"{found.etag}"',
            "LastModified": modified(found),
            "AcceptRanges": "bytes",
            "ContentLength": length,
            "ContentType": found.fields.get("ContentType", "binary/octet-stream"),
            "VersionId": _version_id(found),
        }
        if told["StorageClass"] == "STANDARD":
            told["StorageClass"] = None
        if "Expires" in found.fields:
            told["Expires"] = datetime.datetime.fromtimestamp(found.fields["Expires"], datetime.UTC)
        for name in HEADERS:
            if value := request.get(f"Response{name}"):
                if not HEADER_VALUE.fullmatch(value):
                    raise AwsError("InvalidArgument", f"Response{name} is not a header's value.")
                told[name] = value
        return told

    def get_tagging(self, request: Answer) -> Answer:
        """No tags: nobody can give any. The AWS CLI asks before it copies a large object."""
        return {"TagSet": [], "VersionId": _version_id(self._find(request))}

    # Deleting

    def delete(self, request: Answer) -> Answer:
        with self.store.lock:
            return self._delete(bucket_of(request), request["Key"], request.get("VersionId"))

    def _delete(self, bucket: FakeBucket, key: str, version: str | None) -> Answer:
        if version:
            gone = self.store.remove(bucket.name, key, version)
            marker = True if gone and gone.marker else None
            return {"VersionId": version, "DeleteMarker": marker}
        if not bucket.versioning_status:
            self.store.remove(bucket.name, key, NULL)
            return {}
        made = self.store.put(bucket.name, key, bucket.is_versioned, [], "", {}, marker=True)
        return {"VersionId": made.version, "DeleteMarker": True}

    def delete_many(self, request: Answer) -> Answer:
        wanted = request.get("Delete", {}).get("Objects", [])
        if not 1 <= len(wanted) <= MOST_DELETED:
            raise _malformed(f"1 to {MOST_DELETED} objects.")
        told = []
        for one in wanted:
            version = one.get("VersionId")
            with self.store.lock:
                gone = self._delete(bucket_of(request), one["Key"], version)
            said: Answer = {"Key": one["Key"], "VersionId": version}
            if gone.get("DeleteMarker"):
                said |= {"DeleteMarker": True, "DeleteMarkerVersionId": gone["VersionId"]}
            told.append(said)
        return {} if request["Delete"].get("Quiet") else {"Deleted": told}

    # Uploads in parts

    def begin_upload(self, request: Answer) -> Answer:
        with self.store.lock:
            bucket = bucket_of(request)
            self._check_new(request)
            begun = self.store.begin_upload(bucket.name, request["Key"], _fields(request))
        told = {"Bucket": bucket.name, "Key": begun.key, "UploadId": begun.id}
        return told | {name: begun.fields.get(name) for name in ENCRYPTION}

    def _upload(self, request: Answer) -> Upload:
        bucket_of(request)
        found = self.store.upload(request["UploadId"])
        if found is None or (found.bucket, found.key) != (request["Bucket"], request["Key"]):
            raise AwsError(
                "NoSuchUpload",
                "The specified upload does not exist. The upload ID may be invalid, or the "
                "upload may have been aborted or completed.",
                404,
            )
        return found

    def upload_part(self, request: Answer) -> Answer:
        self._check_part(request)
        body: Body = request["Body"]
        segment = self.store.blobs.write(body)
        return {"ETag": f'"{self._store_part(request, segment, body.etag).etag}"'}

    def copy_part(self, request: Answer) -> Answer:
        self._check_part(request)
        source = self._source(request)
        start, length = 0, source.size
        if said := request.get("CopySourceRange"):
            found = _range(said, source.size)
            if found is None:
                raise AwsError("InvalidArgument", f"The range is not valid: {said}")
            start, length = found
        digest = hashlib.md5(usedforsecurity=False)
        reading = self.store.blobs.read(source.segments, start, length)

        def pieces():
            for piece in reading:
                digest.update(piece)
                yield piece

        try:
            segment = self.store.blobs.write(pieces())
        finally:
            reading.close()
        part = self._store_part(request, segment, digest.hexdigest())
        told = {"ETag": f'"{part.etag}"', "LastModified": modified(part)}
        return {"CopyPartResult": told, "CopySourceVersionId": _version_id(source)}

    def _check_part(self, request: Answer) -> None:
        if not 1 <= request["PartNumber"] <= MOST_PARTS:
            raise AwsError(
                "InvalidArgument",
                f"Part number must be an integer between 1 and {MOST_PARTS}, inclusive",
            )
        self._upload(request)

    def _store_part(self, request: Answer, segment: Segment, etag: str) -> Stored:
        try:
            with self.store.lock:
                upload = self._upload(request)
                return self.store.put_part(upload.id, request["PartNumber"], segment, etag)
        except BaseException:
            self.store.blobs.remove([segment])
            raise

    def complete_upload(self, request: Answer) -> Answer:
        wanted = (request.get("MultipartUpload") or {}).get("Parts", [])
        with self.store.lock:
            upload = self._upload(request)
            self._check_condition(request)
            parts = self._chosen_parts(upload, wanted)
            digests = b"".join(bytes.fromhex(one.etag) for one in parts)
            etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"
            segments = [segment for one in parts for segment in one.segments]
            found = self._store(request, segments, etag, upload.fields, upload=upload.id)
        location = f"/{upload.bucket}/{quote(upload.key)}"
        told = {"Bucket": upload.bucket, "Key": upload.key, "Location": location}
        return _put_answer(found) | told

    def _chosen_parts(self, upload: Upload, wanted: list[Answer]) -> list[Stored]:
        if not wanted:
            raise _malformed("an upload is completed with at least one part.")
        numbers = [one["PartNumber"] for one in wanted]
        if numbers != sorted(set(numbers)):
            raise AwsError(
                "InvalidPartOrder",
                "The list of parts was not in ascending order. Parts list must be specified in "
                "order by part number.",
            )
        there = {one.number: one for one in self.store.parts(upload.id)}
        parts = []
        for one in wanted:
            part = there.get(one["PartNumber"])
            if part is None or one.get("ETag", "").strip('"') != part.etag:
                raise AwsError(
                    "InvalidPart",
                    "One or more of the specified parts could not be found. The part might not "
                    "have been uploaded, or the specified entity tag might not have matched the "
                    "part's entity tag.",
                )
            parts.append(part)
        if any(part.size < PART_MINIMUM for part in parts[:-1]):
            raise AwsError(
                "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size"
            )
        return parts

    def abort_upload(self, request: Answer) -> Answer:
        with self.store.lock:
            self.store.end_upload(self._upload(request).id)
        return {}

    def list_parts(self, request: Answer) -> Answer:
        """All of them, in one page."""
        upload = self._upload(request)
        return {
            "Bucket": upload.bucket,
            "Key": upload.key,
            "UploadId": upload.id,
            "MaxParts": MOST_PARTS,
            "IsTruncated": False,
            "StorageClass": "STANDARD",
            "Owner": OWNER,
            "Parts": [
                {
                    "PartNumber": one.number,
                    "ETag": f'"{one.etag}"',
                    "Size": one.size,
                    "LastModified": modified(one),
                }
                for one in self.store.parts(upload.id)
            ],
        }

    def list_uploads(self, request: Answer) -> Answer:
        """All of them, in one page."""
        bucket, prefix = bucket_of(request), request.get("Prefix") or ""
        encode = listing.encoder(request)
        return {
            "Bucket": bucket.name,
            "Prefix": prefix,
            "MaxUploads": 1000,
            "IsTruncated": False,
            "EncodingType": request.get("EncodingType"),
            "Uploads": [
                {
                    "Key": encode(one.key),
                    "UploadId": one.id,
                    "Initiated": datetime.datetime.fromtimestamp(one.started, datetime.UTC),
                    "StorageClass": "STANDARD",
                    "Owner": OWNER,
                }
                for one in self.store.uploads(bucket.name, prefix)
            ],
        }


def _fields(request: Answer) -> Answer:
    """What a request says of an object, as the store keeps it."""
    found = {name: request[name] for name in SYSTEM if request.get(name) not in (None, {})}
    if "Metadata" in found:
        found["Metadata"] = {key.lower(): value for key, value in found["Metadata"].items()}
    encoding = found.pop("ContentEncoding", "")
    if kept := ",".join(one for one in encoding.split(",") if one.strip() != "aws-chunked"):
        found["ContentEncoding"] = kept
    if request.get("Expires"):
        when = request["Expires"]
        when = email.utils.parsedate_to_datetime(when) if isinstance(when, str) else when
        found["Expires"] = when.timestamp()
    return found


def _put_answer(found: Stored) -> Answer:
    told = {"ETag": f'"{found.etag}"', "VersionId": _version_id(found)}
    return told | {name: found.fields.get(name) for name in ENCRYPTION}


def _source_parts(request: Answer) -> tuple[str, str, str | None]:
    """(bucket, key, version) that CopySource names."""
    text, _, version = request["CopySource"].partition("?versionId=")
    bucket, _, key = unquote(text).removeprefix("/").partition("/")
    if not (bucket and key):
        raise AwsError("InvalidArgument", "Copy Source must mention the source bucket and key")
    return bucket, key, version or None


def _check_read_conditions(request: Answer, found: Stored) -> None:
    """Raise AwsError (412) or NotModified (304), in the order that RFC 9110 gives."""
    modified = int(found.modified)
    if wanted := request.get("IfMatch"):
        if not _matches(wanted, found):
            raise _precondition("If-Match")
    elif (since := request.get("IfUnmodifiedSince")) and modified > since.timestamp():
        raise _precondition("If-Unmodified-Since")
    if unwanted := request.get("IfNoneMatch"):
        if _matches(unwanted, found):
            raise NotModified
    elif (since := request.get("IfModifiedSince")) and modified <= since.timestamp():
        raise NotModified


def _matches(tags: str, found: Stored) -> bool:
    said = [one.strip().removeprefix("W/").strip('"') for one in tags.split(",")]
    return "*" in said or found.etag in said


def _part_or_range(request: Answer, found: Stored) -> tuple[int, int, Answer]:
    """Which bytes are wanted: (first, how many, members that say so)."""
    said, number = request.get("Range"), request.get("PartNumber")
    told: Answer = {}
    if number:
        sizes = [size for _, size in found.segments] or [0]
        if said:
            raise AwsError(
                "InvalidArgument", "Cannot specify both Range header and partNumber query parameter"
            )
        if not 1 <= number <= len(sizes):
            raise AwsError("InvalidPartNumber", "The requested partnumber is not satisfiable", 416)
        wanted = sum(sizes[: number - 1]), sizes[number - 1]
        told = {"PartsCount": len(sizes)} if "-" in found.etag else {}
    elif not said or (wanted := _range(said, found.size)) is None:
        return 0, found.size, {}  # HTTP says to ignore what is not a range at all
    start, length = wanted
    if length:
        told["ContentRange"] = f"bytes {start}-{start + length - 1}/{found.size}"
    return start, length, told


def _range(said: str, size: int) -> tuple[int, int] | None:
    """(first, how many) of a Range header; None if it is not one range of bytes.

    Raises AwsError (InvalidRange) for one outside the object.
    """
    found = re.fullmatch(r"\s*bytes\s*=\s*([0-9]*)\s*-\s*([0-9]*)\s*", said)
    if found is None or not any(found.groups()):
        return None
    first, last = found.groups()
    if not first:
        start, end = max(0, size - int(last)), size - 1
    else:
        start, end = int(first), min(int(last), size - 1) if last else size - 1
        if last and int(last) < start:
            return None
    if start >= size or (not first and not int(last)):
        raise AwsError("InvalidRange", "The requested range is not satisfiable", 416)
    return start, end - start + 1


def _version_id(found: Stored) -> str | None:
    return None if found.version == NULL else found.version


def _no_key(key: str) -> AwsError:
    return AwsError("NoSuchKey", f"The specified key does not exist: {key}", 404)


def _malformed(wanted: str) -> AwsError:
    return AwsError(
        "MalformedXML",
        "The XML you provided was not well-formed or did not validate against our published "
        f"schema: {wanted}",
    )


def _precondition(name: str) -> AwsError:
    message = f"At least one of the pre-conditions you specified did not hold: {name}"
    return AwsError("PreconditionFailed", message, 412)
