"""Upload a folder to S3, leaving alone what is already there."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from data_prep.channels import DataError, files_below, say


def upload(
    directory: str | Path, destination: str, *, client: Any, quiet: bool = False
) -> list[str]:
    """Copy every file below `directory` to `destination` ("s3://bucket/prefix").

    As `aws s3 sync` does, it skips a file whose object has the same size and is not older.
    `client` is a boto3 S3 client. Returns the keys that were sent. Raises DataError when there is
    nothing to upload, and what boto3 raises when S3 refuses.
    """
    address = urlsplit(destination)
    bucket, prefix = address.netloc, f"{address.path.strip('/')}/".lstrip("/")
    files = {prefix + name: path for name, path in files_below(Path(directory)).items()}
    if not files:
        raise DataError(f"{directory} holds no files, so there is nothing to upload.")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    objects = {item["Key"]: item for page in pages for item in page.get("Contents", [])}
    sent = [key for key, path in files.items() if not _is_there(path, objects.get(key))]
    for key in sent:
        client.upload_file(str(files[key]), bucket, key)
    say(
        f"{destination}: sent {len(sent)} files, {len(files) - len(sent)} were already there",
        quiet=quiet,
    )
    if others := sorted(objects.keys() - files.keys()):
        say(
            f"note: {len(others)} other objects are under this prefix, for example {others[0]}; a "
            "training channel on it would read them, too",
            quiet=quiet,
        )
    return sent


def _is_there(path: Path, item: dict[str, Any] | None) -> bool:
    """Whether S3 has the file already. item: what it lists of the key."""
    stat = path.stat()
    return (
        item is not None
        and item["Size"] == stat.st_size
        and item["LastModified"].timestamp() >= int(stat.st_mtime)
    )
