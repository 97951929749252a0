"""S3's calls on objects, as functions from a request's members to an answer's.

Members are those of botocore's model of S3. What S3 has and this lacks (access lists of single
objects, locks, S3 Select, restoring) is refused by protocol.py.
"""

from __future__ import annotations

import base64
import datetime
import email.utils
import hashlib
import re
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import parse_qsl, quote, unquote

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, s3_backends

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.s3 import listing
from local_sagemaker.s3.blobs import Segment
from local_sagemaker.s3.bodies import ALGORITHMS, CHECKSUMS, Body
from local_sagemaker.s3.listing import OWNER, modified
from local_sagemaker.s3.store import NULL, ObjectStore, Stored, Upload

OBJECT_LIMIT = 5 * 1024**3  # bytes; S3's limit for one PUT, and for one part
PART_MINIMUM = 5 * 1024**2  # bytes; of every part but the last
MOST_PARTS = 10_000
MOST_DELETED = 1000  # keys in one DeleteObjects
KEY_LIMIT = 1024  # bytes
# What a client says of an object, and hears again.
SYSTEM = (
    *("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"),
    *("StorageClass", "WebsiteRedirectLocation", "ServerSideEncryption", "SSEKMSKeyId"),
    *("BucketKeyEnabled", "Metadata"),
)
COPIED = (*SYSTEM, "Expires")
ANSWERED = ("ServerSideEncryption", "SSEKMSKeyId", "BucketKeyEnabled")
OVERRIDES = (
    *("ContentType", "CacheControl", "ContentDisposition", "ContentEncoding", "ContentLanguage"),
)

Answer = dict[str, Any]


class NotModified(AwsError):
    def __init__(self) -> None:
        super().__init__("NotModified", "Not Modified", 304)


def bucket_of(request: Answer) -> FakeBucket:
    """The bucket that a request names. Raises AwsError (NoSuchBucket, AccessDenied)."""
    if request.get("ExpectedBucketOwner", DEFAULT_ACCOUNT_ID) != DEFAULT_ACCOUNT_ID:
        raise AwsError("AccessDenied", "Access Denied: the bucket has another owner.", 403)
    return find_bucket(request["Bucket"])


def find_bucket(name: str) -> FakeBucket:
    try:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket(name)
    except S3ClientError as error:
        raise AwsError("NoSuchBucket", "The specified bucket does not exist", 404) from error


class ObjectCalls:
    """The calls, over a store. `by_name`: operation -> what answers it."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.by_name: dict[str, Callable[[Answer], Answer]] = {
            "PutObject": self.put,
            "GetObject": self.get,
            "HeadObject": self.head,
            "DeleteObject": self.delete,
            "DeleteObjects": self.delete_many,
            "CopyObject": self.copy,
            "GetObjectAttributes": self.attributes,
            "GetObjectAcl": self.get_acl,
            "GetObjectTagging": self.get_tagging,
            "PutObjectTagging": self.put_tagging,
            "DeleteObjectTagging": self.delete_tagging,
            "CreateMultipartUpload": self.begin_upload,
            "UploadPart": self.upload_part,
            "UploadPartCopy": self.copy_part,
            "CompleteMultipartUpload": self.complete_upload,
            "AbortMultipartUpload": self.abort_upload,
            "ListParts": self.list_parts,
            "ListMultipartUploads": self.list_uploads,
            "ListObjects": lambda request: listing.objects(store, bucket_of(request), request),
            "ListObjectsV2": lambda request: listing.objects_v2(store, bucket_of(request), request),
            "ListObjectVersions": lambda request: listing.versions(
                store, bucket_of(request), request
            ),
        }

    # Storing

    def put(self, request: Answer) -> Answer:
        bucket_of(request)
        self._check_new(request)
        body: Body = request["Body"]
        segment = self.store.blobs.write(body)
        fields = _fields(request) | body.checksums
        found = self._store(request, [segment], body.etag, fields)
        return self._put_answer(found) | body.checksums

    def _check_new(self, request: Answer) -> None:
        if len(request["Key"].encode()) > KEY_LIMIT:
            raise AwsError("KeyTooLongError", "Your key is too long")
        _refuse_access_list(request)
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
        if (wanted and not _matches(wanted, found)) or (unwanted and found):
            raise _precondition("If-Match" if wanted else "If-None-Match")

    def _store(
        self, request: Answer, segments: list[Segment], etag: str, fields: Answer, **more: Any
    ) -> Stored:
        """Make the version. What was written is removed if that fails."""
        try:
            with self.store.lock:  # the bucket, and what is there, as they are now
                bucket = bucket_of(request)
                self._check_condition(request)
                default = _encryption(bucket)
                fields = {
                    key: value for key, value in default.items() if key not in fields
                } | fields
                return self.store.put(
                    bucket.name, request["Key"], bucket.is_versioned, segments, etag, fields, **more
                )
        except BaseException:
            if not more:
                self.store.blobs.remove(segments)
            raise

    def _put_answer(self, found: Stored) -> Answer:
        told = {"ETag": f'"{found.etag}"', "VersionId": _version_id(found)}
        return told | {name: found.fields.get(name) for name in ANSWERED}

    def copy(self, request: Answer) -> Answer:
        source = self._source(request)
        self._check_new(request)
        replace = request.get("MetadataDirective") == "REPLACE"
        same = (source.key, _source_parts(request)[0]) == (request["Key"], request["Bucket"])
        if same and not replace and not _source_parts(request)[2]:
            raise AwsError(
                "InvalidRequest",
                "This copy request is illegal because it is trying to copy an object to itself "
                "without changing the object's metadata, storage class, website redirect "
                "location or encryption attributes.",
            )
        kept = (*COPIED, "Tags", *(f"Checksum{name}" for name in CHECKSUMS), "ChecksumType")
        fields = {name: source.fields[name] for name in kept if name in source.fields}
        asked = _fields(request)
        if replace:
            fields = {k: v for k, v in fields.items() if k not in COPIED} | asked
        else:
            given = (*ANSWERED, "StorageClass")
            fields |= {name: asked[name] for name in given if name in asked}
        if request.get("TaggingDirective") == "REPLACE":
            fields["Tags"] = asked.get("Tags", {})
        segments = self.store.blobs.link(source.segments)
        found = self._store(request, segments, source.etag, fields)
        result = {"ETag": f'"{found.etag}"', "LastModified": modified(found)}
        result |= {name: value for name, value in fields.items() if name.startswith("Checksum")}
        told = self._put_answer(found) | {"CopyObjectResult": result}
        return told | {"CopySourceVersionId": _version_id(source)}

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
        version = request.get("VersionId")
        if version:
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
        told |= self._describe(found)
        told["ContentLength"] = length
        for name in OVERRIDES:
            told[name] = request.get(f"Response{name}") or told.get(name)
        if request.get("ChecksumMode") == "ENABLED" and length == found.size:
            told |= _checksums(found)
        return told

    def _describe(self, found: Stored) -> Answer:
        fields = found.fields
        told = {name: fields.get(name) for name in SYSTEM}
        told |= {
            "ETag": f'"{found.etag}"',
            "LastModified": modified(found),
            "AcceptRanges": "bytes",
            "ContentType": fields.get("ContentType", "binary/octet-stream"),
            "VersionId": _version_id(found),
            "TagCount": len(fields.get("Tags", {})) or None,
        }
        if told["StorageClass"] == "STANDARD":
            told["StorageClass"] = None
        if "Expires" in fields:
            told["Expires"] = datetime.datetime.fromtimestamp(fields["Expires"], datetime.UTC)
        return told

    def attributes(self, request: Answer) -> Answer:
        found = self._find(request)
        everything = {
            "ETag": found.etag,
            "Checksum": _checksums(found) or None,
            "StorageClass": found.fields.get("StorageClass", "STANDARD"),
            "ObjectSize": found.size,
            "ObjectParts": {"TotalPartsCount": len(found.segments)} if "-" in found.etag else None,
        }
        told = {name: everything.get(name) for name in request.get("ObjectAttributes", [])}
        return told | {"LastModified": modified(found), "VersionId": _version_id(found)}

    def get_acl(self, request: Answer) -> Answer:
        self._find(request)
        grantee = OWNER | {"Type": "CanonicalUser"}
        return {"Owner": OWNER, "Grants": [{"Grantee": grantee, "Permission": "FULL_CONTROL"}]}

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
            raise AwsError(
                "MalformedXML",
                "The XML you provided was not well-formed or did not validate against our "
                f"published schema: 1 to {MOST_DELETED} objects.",
            )
        told = []
        for one in wanted:
            with self.store.lock:
                gone = self._delete(bucket_of(request), one["Key"], one.get("VersionId"))
            version = one.get("VersionId")
            said: Answer = {"Key": one["Key"], "VersionId": version}
            if gone.get("DeleteMarker"):
                said |= {"DeleteMarker": True, "DeleteMarkerVersionId": gone["VersionId"]}
            told.append(said)
        return {} if request["Delete"].get("Quiet") else {"Deleted": told}

    # Tags

    def get_tagging(self, request: Answer) -> Answer:
        found = self._find(request)
        tags = found.fields.get("Tags", {})
        pairs = [{"Key": key, "Value": value} for key, value in tags.items()]
        return {"TagSet": pairs, "VersionId": _version_id(found)}

    def put_tagging(self, request: Answer) -> Answer:
        tags = [(one["Key"], one["Value"]) for one in request["Tagging"]["TagSet"]]
        return self._set_tags(request, _checked_tags(tags))

    def delete_tagging(self, request: Answer) -> Answer:
        return self._set_tags(request, {})

    def _set_tags(self, request: Answer, tags: dict[str, str]) -> Answer:
        with self.store.lock:
            found = self._find(request)
            fields = found.fields | {"Tags": tags}
            self.store.set_fields(request["Bucket"], found.key, found.version, fields)
        return {"VersionId": _version_id(found)}

    # Uploads in parts

    def begin_upload(self, request: Answer) -> Answer:
        with self.store.lock:
            bucket = bucket_of(request)
            self._check_new(request)
            fields = _encryption(bucket) | _fields(request)
            algorithm = request.get("ChecksumAlgorithm")
            if algorithm:
                kind = "FULL_OBJECT" if algorithm == "CRC64NVME" else "COMPOSITE"
                fields |= {
                    "ChecksumAlgorithm": algorithm,
                    "ChecksumType": request.get("ChecksumType") or kind,
                }
            begun = self.store.begin_upload(bucket.name, request["Key"], fields)
        told = {"Bucket": bucket.name, "Key": begun.key, "UploadId": begun.id}
        shown = (*ANSWERED, "ChecksumAlgorithm", "ChecksumType")
        return told | {name: fields.get(name) for name in shown}

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
        self._checked_number(request)
        self._upload(request)
        body: Body = request["Body"]
        segment = self.store.blobs.write(body)
        part = self._store_part(request, segment, body.etag, dict(body.checksums))
        return {"ETag": f'"{part.etag}"'} | body.checksums

    def copy_part(self, request: Answer) -> Answer:
        self._checked_number(request)
        self._upload(request)
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
        part = self._store_part(request, segment, digest.hexdigest(), {})
        told = {"ETag": f'"{part.etag}"', "LastModified": modified(part)}
        return {"CopyPartResult": told, "CopySourceVersionId": _version_id(source)}

    @staticmethod
    def _checked_number(request: Answer) -> None:
        if not 1 <= request["PartNumber"] <= MOST_PARTS:
            raise AwsError(
                "InvalidArgument",
                f"Part number must be an integer between 1 and {MOST_PARTS}, inclusive",
            )

    def _store_part(self, request: Answer, segment: Segment, etag: str, fields: Answer) -> Stored:
        try:
            with self.store.lock:
                upload = self._upload(request)
                return self.store.put_part(upload.id, request["PartNumber"], segment, etag, fields)
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
            fields = {k: v for k, v in upload.fields.items() if k != "ChecksumAlgorithm"}
            checksums = _whole_checksum(upload, parts, request)
            segments = [segment for one in parts for segment in one.segments]
            found = self._store(request, segments, etag, fields | checksums, upload=upload.id)
        told = {"Bucket": upload.bucket, "Key": upload.key, "ETag": f'"{etag}"'}
        told["Location"] = f"/{upload.bucket}/{quote(upload.key)}"
        return self._put_answer(found) | told | checksums

    def _chosen_parts(self, upload: Upload, wanted: list[Answer]) -> list[Stored]:
        if not wanted:
            raise AwsError(
                "MalformedXML",
                "The XML you provided was not well-formed or did not validate against our "
                "published schema: an upload is completed with at least one part.",
            )
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
        upload = self._upload(request)
        most = min(_number(request.get("MaxParts"), 1000, "max-parts"), 1000)
        marker = _number(request.get("PartNumberMarker"), 0, "part-number-marker")
        left = [one for one in self.store.parts(upload.id) if one.number > marker]
        shown = left[:most]
        return {
            "Bucket": upload.bucket,
            "Key": upload.key,
            "UploadId": upload.id,
            "PartNumberMarker": marker,
            "NextPartNumberMarker": shown[-1].number if shown else 0,
            "MaxParts": most,
            "IsTruncated": len(left) > len(shown),
            "StorageClass": "STANDARD",
            "Owner": OWNER,
            "Parts": [
                {
                    "PartNumber": one.number,
                    "ETag": f'"{one.etag}"',
                    "Size": one.size,
                    "LastModified": modified(one),
                }
                | one.fields
                for one in shown
            ],
        }

    def list_uploads(self, request: Answer) -> Answer:
        bucket, prefix = bucket_of(request), request.get("Prefix") or ""
        url = request.get("EncodingType") == "url"
        told = [
            {
                "Key": quote(one.key) if url else one.key,
                "UploadId": one.id,
                "Initiated": datetime.datetime.fromtimestamp(one.started, datetime.UTC),
                "StorageClass": "STANDARD",
                "Owner": OWNER,
            }
            for one in self.store.uploads(bucket.name, prefix)
        ]
        return {
            "Bucket": bucket.name,
            "Prefix": prefix,
            "MaxUploads": 1000,
            "IsTruncated": False,
            "EncodingType": request.get("EncodingType"),
            "Uploads": told,
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
    if request.get("Tagging"):
        found["Tags"] = _checked_tags(parse_qsl(request["Tagging"], keep_blank_values=True))
    return found


def _encryption(bucket: FakeBucket) -> Answer:
    """What S3 encrypts with where nobody says: the bucket's default, or its own keys."""
    rule = (bucket.encryption or {}).get("Rule") or {}
    rule = rule[0] if isinstance(rule, list) else rule
    default = rule.get("ApplyServerSideEncryptionByDefault") or {}
    found = {"ServerSideEncryption": default.get("SSEAlgorithm", "AES256")}
    if default.get("KMSMasterKeyID"):
        found["SSEKMSKeyId"] = default["KMSMasterKeyID"]
    return found


def _checked_tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise AwsError("InvalidTag", "Cannot provide multiple Tags with the same key")
    if len(pairs) > 10:
        raise AwsError("BadRequest", "Object tags cannot be greater than 10")
    return dict(pairs)


def _refuse_access_list(request: Answer) -> None:
    asked = request.get("ACL")
    if asked not in (None, "private", "bucket-owner-full-control", "bucket-owner-read"):
        raise AwsError(
            "AccessControlListNotSupported",
            f"ACL {asked}: the local endpoint keeps no access lists of objects; only its own keys "
            "reach them. Leave ACL out.",
        )


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


def _matches(tags: str, found: Stored | None) -> bool:
    if found is None:
        return False
    said = [one.strip().removeprefix("W/").strip('"') for one in tags.split(",")]
    return "*" in said or found.etag in said


def _part_or_range(request: Answer, found: Stored) -> tuple[int, int, Answer]:
    """Which bytes are wanted: (first, how many, members that say so)."""
    if number := request.get("PartNumber"):
        parts = found.segments or [("", 0)]
        if request.get("Range"):
            _invalid_argument("Cannot specify both Range header and partNumber query parameter")
        if not 1 <= number <= len(parts):
            raise AwsError("InvalidPartNumber", "The requested partnumber is not satisfiable", 416)
        start = sum(size for _, size in parts[: number - 1])
        length = parts[number - 1][1]
        told: Answer = {"PartsCount": len(parts)} if "-" in found.etag else {}
        if length:
            told["ContentRange"] = f"bytes {start}-{start + length - 1}/{found.size}"
        return start, length, told
    said = request.get("Range")
    wanted = _range(said, found.size) if said else (0, found.size)
    if wanted is None:  # not a range at all: HTTP says to ignore it
        return 0, found.size, {}
    start, length = wanted
    if not said:
        return start, length, {}
    return start, length, {"ContentRange": f"bytes {start}-{start + length - 1}/{found.size}"}


def _range(said: str, size: int) -> tuple[int, int] | None:
    """(first, how many) of a Range header; None if it is not one range of bytes.

    Raises AwsError (InvalidRange) for one outside the object.
    """
    unit, _, numbers = said.partition("=")
    first, dash, last = numbers.partition("-")
    if unit.strip() != "bytes" or not dash or "," in numbers:
        return None
    first, last = first.strip(), last.strip()
    if not re.fullmatch(r"[0-9]+-[0-9]*|-[0-9]+", f"{first}-{last}"):
        return None
    if not first:
        start, end = max(0, size - int(last)), size - 1
    else:
        start, end = int(first), min(int(last), size - 1) if last else size - 1
        if last and int(last) < start:
            return None
    if start >= size or (not first and not int(last)):
        raise AwsError("InvalidRange", "The requested range is not satisfiable", 416)
    return start, end - start + 1


def _checksums(found: Stored) -> Answer:
    names = [f"Checksum{name}" for name in CHECKSUMS]
    told = {name: found.fields[name] for name in names if name in found.fields}
    return told | (
        {"ChecksumType": found.fields.get("ChecksumType", "FULL_OBJECT")} if told else {}
    )


def _whole_checksum(upload: Upload, parts: list[Stored], request: Answer) -> Answer:
    """The checksum of an object made of parts: over their checksums, or as the client says it."""
    algorithm = upload.fields.get("ChecksumAlgorithm")
    if not algorithm:
        return {}
    name = f"Checksum{algorithm}"
    told = {"ChecksumType": upload.fields["ChecksumType"]}
    if told["ChecksumType"] == "FULL_OBJECT":
        return told | ({name: request[name]} if request.get(name) else {})
    if algorithm not in ALGORITHMS or not all(name in one.fields for one in parts):
        return {}
    digest = ALGORITHMS[algorithm]()
    for one in parts:
        digest.update(base64.b64decode(one.fields[name]))
    return told | {name: f"{base64.b64encode(digest.digest()).decode()}-{len(parts)}"}


def _version_id(found: Stored) -> str | None:
    return None if found.version == NULL else found.version


def _number(value: object, default: int, name: str) -> int:
    if value is None:
        return default
    if not str(value).isascii() or not str(value).isdigit():
        _invalid_argument(f"Provided {name} not an integer or within integer range")
    return int(str(value))


def _no_key(key: str) -> AwsError:
    return AwsError("NoSuchKey", f"The specified key does not exist: {key}", 404)


def _precondition(name: str) -> AwsError:
    message = f"At least one of the pre-conditions you specified did not hold: {name}"
    return AwsError("PreconditionFailed", message, 412)


def _invalid_argument(message: str) -> NoReturn:
    raise AwsError("InvalidArgument", message)
