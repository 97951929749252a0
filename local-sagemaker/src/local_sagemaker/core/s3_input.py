"""Objects in S3 as input: which ones a request names, and the file that each becomes."""

from __future__ import annotations

import os
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker.core.aws import AWS_ERRORS, LocalAws, split_uri

KIND = "S3Prefix"  # the only S3DataType
Object = tuple[str, str, str]  # bucket, key, path below the channel's directory


class DataError(Exception):
    """Input that cannot be used; the message becomes the FailureReason."""


def objects_below(aws: LocalAws, uri: str, region: str) -> list[Object]:
    """What a channel, or a transform job, takes from S3: all below a prefix."""
    bucket, prefix = split_uri(uri)
    # Names below the channel are what follows the prefix's last slash.
    base = prefix if prefix.endswith("/") else prefix.rpartition("/")[0] + "/" * ("/" in prefix)
    objects = [(bucket, key, key[len(base) :]) for _, key, _ in aws.objects(uri, region)]
    if prefix and not prefix.endswith("/"):  # s3://b/data means s3://b/data/ when that exists
        nested = [(b, k, k[len(prefix) + 1 :]) for b, k, _ in objects if k.startswith(prefix + "/")]
        objects = nested or objects
    return objects


def download_below(aws: LocalAws, region: str, uri: str, folder: Path, failure: str) -> int:
    """All objects below a prefix into a folder; how many there are. Raises DataError."""
    try:
        objects = objects_below(aws, uri, region)
    except AWS_ERRORS as error:
        raise DataError(f"{failure} {uri}: {error}") from error
    for bucket, key, path in objects:
        download(aws, region, bucket, key, inside(folder, path, key), failure)
    return len(objects)


def download(aws: LocalAws, region: str, bucket: str, key: str, path: Path, failure: str) -> None:
    """An object into a file. Raises DataError, whose message begins with `failure`."""
    try:
        aws.client("s3", region).download_file(bucket, key, str(path))
    except ClientError as error:
        message = error.response["Error"]["Message"]
        raise DataError(f"{failure} s3://{bucket}/{key}: {message}") from error
    except (BotoCoreError, OSError) as error:
        raise DataError(f"{failure} s3://{bucket}/{key}: {error}") from error


def inside(folder: Path, name: str, key: str) -> Path:
    """The file `name` below `folder`, with its directory made.

    Raises DataError for an S3 key that would leave the folder, or that needs a directory
    where another object has a file, or the other way round.
    """
    path = folder / name.lstrip("/")  # "data//part" is a key as good as any
    if ".." in path.parts:
        raise DataError(f"S3 key '{key}' would leave its directory on the instance.")
    if "\0" in name:
        raise DataError(f"S3 key {key!r} cannot be a file: no name holds a zero byte. Rename it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"S3 key '{key}' cannot be a file: {error.strerror}. Rename it.") from error
    if os.path.isdir(path):  # Path.is_dir() raises for a name that is too long
        raise DataError(f"S3 key '{key}' is the folder of another object: rename one.")
    return path
