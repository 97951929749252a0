"""Upload a directory to S3, leaving alone what is already there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data_prep.errors import DataError
from data_prep.manifest import LITTER, sha256_of
from data_prep.progress import bar, say

SUM_KEY = "sha256"


@dataclass(frozen=True)
class UploadResult:
    """What an upload did: keys sent, keys that were already there, bytes sent, and keys
    under the prefix that the directory does not have (left alone)."""

    sent: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    bytes_sent: int = 0
    strangers: list[str] = field(default_factory=list)


def split_uri(uri: str) -> tuple[str, str]:
    """Split "s3://bucket/a/b" into ("bucket", "a/b/"); the prefix may be empty."""
    scheme, _, rest = uri.partition("://")
    bucket, _, prefix = rest.partition("/")
    if scheme != "s3" or not bucket:
        raise DataError(f"{uri!r} is no S3 address: expected s3://BUCKET/PREFIX")
    prefix = prefix.strip("/")
    return bucket, f"{prefix}/" if prefix else ""


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
    files = _files(directory, prefix)
    with _explained(bucket, destination):
        client = client or _client()
        present = _present(client, bucket, prefix)
        sent, skipped = [], []
        total = sum(path.stat().st_size for path in files.values())
        done = 0
        with bar(total, f"s3://{bucket}", quiet=quiet) as shown:
            for key, path in files.items():
                size, digest = path.stat().st_size, sha256_of(path)
                if present.get(key) == size and _sum_of(client, bucket, key) == digest:
                    skipped.append(key)
                    shown.update(size)
                    continue
                _send(client, path, bucket, key, digest, shown)
                sent.append(key)
                done += size
    result = UploadResult(sent, skipped, done, sorted(set(present) - set(files)))
    _report(result, destination, quiet)
    return result


def _files(directory: Path, prefix: str) -> dict[str, Path]:
    if not directory.is_dir():
        raise DataError(
            f"there is no folder {directory}. Prepare the data first, for example: "
            "python -m data_prep digits"
        )
    files = {
        prefix + path.relative_to(directory).as_posix(): path
        for path in sorted(directory.rglob("*"))
        if path.is_file() and not LITTER.intersection(path.relative_to(directory).parts)
    }
    if not files:
        raise DataError(f"{directory} holds no files, so there is nothing to upload")
    return files


def _client() -> Any:
    # Imported here: only an upload needs boto3.
    import boto3

    return boto3.client("s3")


def _present(client: Any, bucket: str, prefix: str) -> dict[str, int]:
    """Key -> size in bytes of everything under the prefix."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {item["Key"]: item["Size"] for page in pages for item in page.get("Contents", [])}


def _sum_of(client: Any, bucket: str, key: str) -> str | None:
    return client.head_object(Bucket=bucket, Key=key)["Metadata"].get(SUM_KEY)


def _send(client: Any, path: Path, bucket: str, key: str, digest: str, shown: Any) -> None:
    extra = {"Metadata": {SUM_KEY: digest}}
    client.upload_file(str(path), bucket, key, ExtraArgs=extra, Callback=shown.update)


@contextmanager
def _explained(bucket: str, destination: str) -> Iterator[None]:
    """Turn boto3's errors into DataError with the way out."""
    import boto3.exceptions
    import botocore.exceptions as errors

    try:
        yield
    except (errors.NoCredentialsError, errors.PartialCredentialsError) as error:
        raise DataError(
            f"no AWS credentials were found ({error}). Sign in (for example `aws configure`), "
            "or work without AWS: start the kit's local endpoint and set AWS_ENDPOINT_URL."
        ) from error
    except errors.EndpointConnectionError as error:
        raise DataError(
            f"S3 does not answer ({error}). Check the network, and AWS_ENDPOINT_URL if it is set."
        ) from error
    except (errors.ClientError, boto3.exceptions.S3UploadFailedError) as error:
        raise DataError(_refusal(str(error), bucket, destination)) from error
    except errors.BotoCoreError as error:
        raise DataError(f"the upload to {destination} failed: {error}") from error


def _refusal(text: str, bucket: str, destination: str) -> str:
    if "NoSuchBucket" in text or "(404)" in text:
        return f"there is no bucket {bucket}. Create it, or give another: s3://BUCKET/PREFIX"
    if "AccessDenied" in text or "(403)" in text:
        return (
            f"AWS refuses access to {destination} ({text}). Use a bucket of yours, and a role "
            "with s3:ListBucket, s3:GetObject and s3:PutObject on it."
        )
    return f"the upload to {destination} failed: {text}"


def _report(result: UploadResult, destination: str, quiet: bool) -> None:
    say(
        f"{destination}: sent {len(result.sent)} files ({result.bytes_sent:,} bytes), "
        f"{len(result.skipped)} were already there",
        quiet=quiet,
    )
    if result.strangers:
        say(
            f"note: {len(result.strangers)} other objects are under this prefix, for example "
            f"{result.strangers[0]}; a training channel on it would read them, too",
            quiet=quiet,
        )
