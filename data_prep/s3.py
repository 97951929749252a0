"""Upload a folder to S3, leaving alone what is already there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from data_prep.channels import DataError, files_below, say

# boto3 itself waits minutes for a server that is silent.
PATIENCE = {"connect_timeout": 10, "read_timeout": 30, "retries": {"total_max_attempts": 3}}


@dataclass(frozen=True)
class UploadResult:
    """Keys sent, keys that were already there, and the keys under the prefix that the folder
    does not have (left alone)."""

    sent: list[str]
    skipped: list[str]
    others: list[str]


def upload(
    directory: str | Path, destination: str, *, client: Any = None, quiet: bool = False
) -> UploadResult:
    """Copy every file below `directory` to `destination` ("s3://bucket/prefix").

    As `aws s3 sync` does, it skips a file whose object has the same size and is not older.
    `client` is a boto3 S3 client; without it one is made from the environment. Raises DataError
    when there is nothing to upload, or S3 refuses.
    """
    import boto3.exceptions
    import botocore.exceptions

    directory, address = Path(directory), urlsplit(destination)
    if address.scheme != "s3" or not address.netloc:
        raise DataError(f"{destination!r} is not an S3 address: expected s3://BUCKET/PREFIX")
    if not directory.is_dir():
        raise DataError(
            f"there is no folder {directory}. Prepare the data first, for example: "
            "python -m data_prep digits"
        )
    prefix = f"{address.path.strip('/')}/".lstrip("/")
    files = {prefix + name: path for name, path in files_below(directory).items()}
    if not files:
        raise DataError(f"{directory} holds no files, so there is nothing to upload")
    try:
        result = _upload(files, address.netloc, prefix, client or _client())
    except (
        botocore.exceptions.BotoCoreError,
        botocore.exceptions.ClientError,
        boto3.exceptions.S3UploadFailedError,
    ) as error:
        raise DataError(
            f"the upload to {destination} failed: {error}. {_remedy(error, address.netloc)}"
        ) from error
    say(
        f"{destination}: sent {len(result.sent)} files, {len(result.skipped)} were already there",
        quiet=quiet,
    )
    if result.others:
        say(
            f"note: {len(result.others)} other objects are under this prefix, for example "
            f"{result.others[0]}; a training channel on it would read them, too",
            quiet=quiet,
        )
    return result


def _upload(files: dict[str, Path], bucket: str, prefix: str, client: Any) -> UploadResult:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    objects = {item["Key"]: item for page in pages for item in page.get("Contents", [])}
    sent, skipped = [], []
    for key, path in files.items():
        stat, there = path.stat(), objects.pop(key, None)
        if (
            there
            and there["Size"] == stat.st_size
            and there["LastModified"].timestamp() >= int(stat.st_mtime)
        ):
            skipped.append(key)
        else:
            client.upload_file(str(path), bucket, key)
            sent.append(key)
    return UploadResult(sent, skipped, sorted(objects))


def _client() -> Any:
    # Imported here: only an upload needs boto3.
    import boto3
    from botocore.config import Config

    return boto3.client("s3", config=Config(**PATIENCE))


def _remedy(error: Exception, bucket: str) -> str:
    from botocore import exceptions

    text = str(error)
    if isinstance(error, exceptions.NoCredentialsError | exceptions.PartialCredentialsError):
        return (
            "There are no AWS credentials. Sign in (for example `aws configure`), or work without "
            "AWS: start the kit's emulator and set AWS_ENDPOINT_URL."
        )
    if isinstance(error, exceptions.ConnectionError | exceptions.HTTPClientError):
        return "S3 does not answer. Check the network, and AWS_ENDPOINT_URL if it is set."
    if "NoSuchBucket" in text or "(404)" in text:
        return f"There is no bucket {bucket}: create it, or give another: s3://BUCKET/PREFIX."
    if "AccessDenied" in text or "(403)" in text:
        return (
            "Use a bucket of yours, and a role with s3:ListBucket, s3:GetObject and "
            "s3:PutObject on it."
        )
    return ""
