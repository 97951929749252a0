"""Listing objects: by pages, under a prefix, with common prefixes at a delimiter."""

from __future__ import annotations

import base64
import dataclasses
import datetime
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, s3_backends

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.s3.store import ObjectStore, Stored

MAX_KEYS = 1000  # keys and common prefixes of one page
OWNER = {"ID": "0" * 64}

Members = dict[str, Any]  # of a request or a result, by botocore's names


def get_bucket(request: Members) -> FakeBucket:
    """The bucket that a request names. Raises AwsError (NoSuchBucket, AccessDenied)."""
    if request.get("ExpectedBucketOwner", DEFAULT_ACCOUNT_ID) != DEFAULT_ACCOUNT_ID:
        raise AwsError("AccessDenied", "Access Denied: the bucket has another owner.", 403)
    try:
        return s3_backends[DEFAULT_ACCOUNT_ID]["aws"].get_bucket(request["Bucket"])
    except S3ClientError as error:
        elsewhere = "AWS's public buckets, as JumpStart's, are not here"
        message = f"The specified bucket does not exist ({elsewhere})"
        raise AwsError("NoSuchBucket", message, 404) from error


@dataclasses.dataclass
class Page:
    """One page. next_key: where the next begins, after it, or None; next_version: with versions."""

    rows: list[Stored]
    common_prefixes: list[str]
    next_key: str | None = None
    next_version: str | None = None


def list_objects(store: ObjectStore, request: Members) -> Members:
    """ListObjects, the first version of the call: pages by Marker."""
    marker = request.get("Marker") or ""
    result, page = _list(store, request, marker)
    for row in result["Contents"]:
        row["Owner"] = OWNER
    result["Marker"] = encoder(request)(marker)
    if page.next_key is not None and request.get("Delimiter"):
        result["NextMarker"] = encoder(request)(page.next_key)
    return result


def list_objects_v2(store: ObjectStore, request: Members) -> Members:
    """ListObjectsV2: pages by ContinuationToken."""
    token, start = request.get("ContinuationToken"), request.get("StartAfter") or ""
    try:
        after = base64.urlsafe_b64decode(token).decode() if token else start
    except ValueError as error:
        message = "The continuation token provided is incorrect"
        raise AwsError("InvalidArgument", message) from error
    result, page = _list(store, request, after)
    if request.get("FetchOwner"):
        for row in result["Contents"]:
            row["Owner"] = OWNER
    result["KeyCount"] = len(result["Contents"]) + len(result["CommonPrefixes"])
    result |= {"ContinuationToken": token, "StartAfter": encoder(request)(start) or None}
    if page.next_key is not None:
        next_token = base64.urlsafe_b64encode(page.next_key.encode()).decode()
        result["NextContinuationToken"] = next_token
    return result


def list_versions(store: ObjectStore, request: Members) -> Members:
    """ListObjectVersions: every version and delete marker, by key, the newest first."""
    prefix, after = request.get("Prefix") or "", request.get("KeyMarker") or ""
    marker = request.get("VersionIdMarker")
    encode = encoder(request)
    bucket = get_bucket(request)
    last = store.version(bucket.name, after, marker) if marker else None
    rows = store.versions(bucket.name, prefix, after, last.number if last else 0)
    page = _page(rows, request, after)
    result = _head(bucket, request, page)
    result |= {"KeyMarker": encode(after), "VersionIdMarker": marker or ""}
    result["Versions"] = [
        _object(row, encode) | {"Owner": OWNER} | _version(row)
        for row in page.rows
        if not row.marker
    ]
    result["DeleteMarkers"] = [
        {"Key": encode(row.key), "LastModified": modified(row), "Owner": OWNER} | _version(row)
        for row in page.rows
        if row.marker
    ]
    if page.next_key is not None:
        result["NextKeyMarker"] = encode(page.next_key)
        result["NextVersionIdMarker"] = page.next_version
    return result


def _list(store: ObjectStore, request: Members, after: str) -> tuple[Members, Page]:
    """What both forms of ListObjects have in common."""
    bucket, encode = get_bucket(request), encoder(request)
    # Without a delimiter, one row more than the page tells whether there is another.
    limit = -1 if request.get("Delimiter") else _limit(request) + 1
    rows = store.keys(bucket.name, request.get("Prefix") or "", after, limit)
    page = _page(rows, request, after)
    contents = [_object(row, encode) for row in page.rows]
    return _head(bucket, request, page) | {"Contents": contents}, page


def _page(rows: list[Stored], request: Members, after: str) -> Page:
    """The first page of `rows`, which are sorted; those that have a common prefix become it."""
    prefix, delimiter = request.get("Prefix") or "", request.get("Delimiter") or ""
    page, limit = Page([], []), _limit(request)
    last_key, last_version = "", None
    for row in rows:
        cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
        common = row.key[: cut + len(delimiter)] if cut >= 0 else ""
        if common and (common == last_key or after.startswith(common)):  # it is on a page already
            continue
        if len(page.rows) + len(page.common_prefixes) == limit:
            if limit:
                page.next_key, page.next_version = last_key, last_version
            return page
        if common:
            page.common_prefixes.append(common)
            last_key, last_version = common, None
        else:
            page.rows.append(row)
            last_key, last_version = row.key, row.version
    return page


def _head(bucket: FakeBucket, request: Members, page: Page) -> Members:
    encode = encoder(request)
    return {
        "Name": bucket.name,
        "Prefix": encode(request.get("Prefix") or ""),
        "Delimiter": encode(request["Delimiter"]) if request.get("Delimiter") else None,
        "MaxKeys": _limit(request),
        "EncodingType": request.get("EncodingType"),
        "IsTruncated": page.next_key is not None,
        "CommonPrefixes": [{"Prefix": encode(common)} for common in page.common_prefixes],
    }


def _object(row: Stored, encode: Callable[[str], str]) -> Members:
    return {
        "Key": encode(row.key),
        "LastModified": modified(row),
        "ETag": row.quoted_etag,
        "Size": row.size,
        "StorageClass": row.fields.get("StorageClass", "STANDARD"),
    }


def _version(row: Stored) -> Members:
    return {"VersionId": row.version, "IsLatest": row.latest}


def encoder(request: Members) -> Callable[[str], str]:
    if request.get("EncodingType") == "url":
        return lambda text: quote(text)
    return lambda text: text


def _limit(request: Members) -> int:
    limit = request.get("MaxKeys")
    if limit is not None and limit < 0:
        raise AwsError("InvalidArgument", "maxKeys must not be negative")
    return MAX_KEYS if limit is None else min(limit, MAX_KEYS)


def modified(row: Stored) -> datetime.datetime:
    """When a version was made."""
    return datetime.datetime.fromtimestamp(row.modified, datetime.UTC)
