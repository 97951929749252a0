"""Upload a folder to S3, leaving alone what is already there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pooch

from data_prep.build import files_of, say
from data_prep.errors import DataError

CHECKSUM = "sha256"  # of an object, in its metadata
# boto3 itself waits minutes for a server that is silent.
PATIENCE = {"connect_timeout": 10, "read_timeout": 30, "retries": {"total_max_attempts": 3}}


@dataclass(frozen=True)
class UploadResult:
    """Keys sent, keys that were already there, bytes sent, and the keys under the prefix that
    the folder does not have (left alone)."""

    sent: list[str]
    skipped: list[str]
    bytes_sent: int
    others: list[str]


def upload(
    directory: str | Path, destination: str, *, client: Any = None, quiet: bool = False
) -> UploadResult:
    """Copy every file below `directory` to `destination` ("s3://bucket/prefix").

    A file is skipped when the object has the same size and the same SHA-256 (kept in the
    object's metadata by an earlier upload). `client` is a boto3 S3 client; without it one
    is made from the environment. Raises DataError when there is nothing to upload, or S3
    refuses.
    """
    directory = Path(directory)
    bucket, prefix = split_uri(destination)
    if not directory.is_dir():
        raise DataError(
            f"there is no folder {directory}. Prepare the data first, for example: "
            "python -m data_prep digits"
        )
    files = {prefix + name: path for name, path in files_of(directory).items()}
    if not files:
        raise DataError(f"{directory} holds no files, so there is nothing to upload")
    sizes = {key: path.stat().st_size for key, path in files.items()}
    sent = []
    with _explained(bucket, destination):
        client = client or _client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        there = {one["Key"]: one["Size"] for page in pages for one in page.get("Contents", [])}
        for key, path in files.items():
            metadata = {CHECKSUM: pooch.file_hash(str(path))}
            if there.get(key) == sizes[key]:
                found = client.head_object(Bucket=bucket, Key=key)["Metadata"].get(CHECKSUM)
                if found == metadata[CHECKSUM]:
                    continue
            client.upload_file(str(path), bucket, key, ExtraArgs={"Metadata": metadata})
            sent.append(key)
    skipped = [key for key in files if key not in sent]
    others = sorted(set(there) - set(files))
    result = UploadResult(sent, skipped, sum(sizes[key] for key in sent), others)
    say(
        f"{destination}: sent {len(sent)} files ({result.bytes_sent:,} bytes), "
        f"{len(skipped)} were already there",
        quiet=quiet,
    )
    if others:
        say(
            f"note: {len(others)} other objects are under this prefix, for example {others[0]}; "
            "a training channel on it would read them, too",
            quiet=quiet,
        )
    return result


def split_uri(uri: str) -> tuple[str, str]:
    """Split "s3://bucket/a/b" into ("bucket", "a/b/"); the prefix may be empty."""
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise DataError(f"{uri!r} is not an S3 address: expected s3://BUCKET/PREFIX")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


def _client() -> Any:
    # Imported here: only an upload needs boto3.
    import boto3
    from botocore.config import Config

    return boto3.client("s3", config=Config(**PATIENCE))


@contextmanager
def _explained(bucket: str, destination: str) -> Iterator[None]:
    """Turn boto3's errors into DataError with the remedy."""
    import boto3.exceptions
    import botocore.exceptions as errors

    try:
        yield
    except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
        raise DataError(
            f"no AWS credentials were found ({error}). Sign in (for example `aws configure`), "
            "or work without AWS: start the kit's emulator and set AWS_ENDPOINT_URL."
        ) from error
    except (errors.ConnectionError, errors.HTTPClientError) as error:
        raise DataError(
            f"S3 does not answer ({error}). Check the network, and AWS_ENDPOINT_URL if it is set."
        ) from error
    except (
        errors.BotoCoreError,
        errors.ClientError,
        boto3.exceptions.S3UploadFailedError,
    ) as error:
        text = str(error)
        if "NoSuchBucket" in text or "(404)" in text:
            remedy = f"There is no bucket {bucket}: create it, or give another: s3://BUCKET/PREFIX."
        elif "AccessDenied" in text or "(403)" in text:
            remedy = (
                "Use a bucket of yours, and a role with s3:ListBucket, s3:GetObject and "
                "s3:PutObject on it."
            )
        else:
            remedy = ""
        raise DataError(f"the upload to {destination} failed: {text}. {remedy}".strip()) from error
