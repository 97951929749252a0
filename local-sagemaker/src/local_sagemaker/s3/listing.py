"""Listing objects: by pages, under a prefix, folded at a delimiter."""

from __future__ import annotations

import base64
import binascii
import datetime
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from moto.s3.models import FakeBucket

from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.s3.store import NULL, ObjectStore, Stored

MOST = 1000  # keys and folded prefixes of one page
OWNER = {"ID": "0" * 64}

Answer = dict[str, Any]


def objects(store: ObjectStore, bucket: FakeBucket, request: Answer) -> Answer:
    """ListObjects, the first version of the call: pages by Marker."""
    marker = request.get("Marker") or ""
    told, last = _page(store, bucket, request, marker)
    for one in told["Contents"]:
        one["Owner"] = OWNER
    told["Marker"] = encoder(request)(marker)
    if told["IsTruncated"] and request.get("Delimiter"):
        told["NextMarker"] = encoder(request)(last)
    return told


def objects_v2(store: ObjectStore, bucket: FakeBucket, request: Answer) -> Answer:
    """ListObjectsV2: pages by ContinuationToken."""
    token, start = request.get("ContinuationToken"), request.get("StartAfter") or ""
    told, last = _page(store, bucket, request, _from_token(token) if token else start)
    if request.get("FetchOwner"):
        for one in told["Contents"]:
            one["Owner"] = OWNER
    told["KeyCount"] = len(told["Contents"]) + len(told["CommonPrefixes"])
    told |= {"ContinuationToken": token, "StartAfter": encoder(request)(start) or None}
    if told["IsTruncated"]:
        told["NextContinuationToken"] = base64.urlsafe_b64encode(last.encode()).decode()
    return told


def versions(store: ObjectStore, bucket: FakeBucket, request: Answer) -> Answer:
    """ListObjectVersions: every version and delete marker, by key, the newest first."""
    prefix, after = request.get("Prefix") or "", request.get("KeyMarker") or ""
    marker = request.get("VersionIdMarker")
    encode, most = encoder(request), _most(request)
    seen = store.version(bucket.name, after, marker) if marker else None
    number = seen.number if seen else 0

    rows = store.versions(bucket.name, prefix, after, number)
    found, folded, more = _fold(rows, prefix, request.get("Delimiter") or "", after, most)
    told: Answer = _head(bucket, request, most) | {
        "KeyMarker": encode(after),
        "VersionIdMarker": marker or "",
        "IsTruncated": more is not None,
        "CommonPrefixes": [{"Prefix": encode(one)} for one in folded],
        "Versions": [
            _object(one, encode) | {"Owner": OWNER} | _version(one)
            for one in found
            if not one.marker
        ],
        "DeleteMarkers": [
            {"Key": encode(one.key), "LastModified": modified(one), "Owner": OWNER} | _version(one)
            for one in found
            if one.marker
        ],
    }
    if more is not None:
        told["NextKeyMarker"] = encode(more if isinstance(more, str) else more.key)
        told["NextVersionIdMarker"] = None if isinstance(more, str) else more.version
    return told


def _page(
    store: ObjectStore, bucket: FakeBucket, request: Answer, after: str
) -> tuple[Answer, str]:
    """What both forms of ListObjects tell, and the last key or prefix of the page."""
    prefix, delimiter = request.get("Prefix") or "", request.get("Delimiter") or ""
    encode, most = encoder(request), _most(request)
    # Where nothing is folded, one row more than the page tells whether there is another.
    rows = store.keys(bucket.name, prefix, after, -1 if delimiter else most + 1)
    found, folded, more = _fold(rows, prefix, delimiter, after, most)
    told = _head(bucket, request, most) | {
        "IsTruncated": more is not None,
        "Contents": [_object(one, encode) for one in found],
        "CommonPrefixes": [{"Prefix": encode(one)} for one in folded],
    }
    return told, more if isinstance(more, str) else more.key if more else ""


def _fold(
    rows: list[Stored], prefix: str, delimiter: str, after: str, most: int
) -> tuple[list[Stored], list[str], Stored | str | None]:
    """One page: rows, common prefixes, and the last of both if there is more, else None."""
    found: list[Stored] = []
    folded: list[str] = []
    last: Stored | str | None = None
    for row in rows:
        cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
        common = row.key[: cut + len(delimiter)] if cut >= 0 else ""
        if common and (common == last or after.startswith(common)):  # it was told already
            continue
        if len(found) + len(folded) == most:
            return found, folded, last if most else None
        if common:
            folded.append(common)
        else:
            found.append(row)
        last = common or row
    return found, folded, None


def _head(bucket: FakeBucket, request: Answer, most: int) -> Answer:
    encode = encoder(request)
    return {
        "Name": bucket.name,
        "Prefix": encode(request.get("Prefix") or ""),
        "Delimiter": encode(request["Delimiter"]) if request.get("Delimiter") else None,
        "MaxKeys": most,
        "EncodingType": request.get("EncodingType"),
    }


def _object(one: Stored, encode: Callable[[str], str]) -> Answer:
    return {
        "Key": encode(one.key),
        "LastModified": modified(one),
        "ETag": f'"{one.etag}"',
        "Size": one.size,
        "StorageClass": one.fields.get("StorageClass", "STANDARD"),
    }


def _version(one: Stored) -> Answer:
    return {"VersionId": one.version or NULL, "IsLatest": one.latest}


def encoder(request: Answer) -> Callable[[str], str]:
    if request.get("EncodingType") == "url":
        return lambda text: quote(text)
    return lambda text: text


def _most(request: Answer) -> int:
    most = request.get("MaxKeys")
    if most is not None and most < 0:
        raise AwsError("InvalidArgument", "maxKeys must not be negative")
    return MOST if most is None else min(most, MOST)


def _from_token(token: str) -> str:
    try:
        return base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, ValueError) as error:
        message = "The continuation token provided is incorrect"
        raise AwsError("InvalidArgument", message) from error


def modified(one: Stored) -> datetime.datetime:
    """When a version was made."""
    return datetime.datetime.fromtimestamp(one.modified, datetime.UTC)
