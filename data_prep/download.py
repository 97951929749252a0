"""The original file of a data set: from a folder, or by pooch, which checks and caches it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pooch
import requests

from data_prep.channels import DataError

TIMEOUT = (10.0, 30.0)  # seconds to connect, and without a byte


def fetch(
    name: str,
    checksum: str,
    source: str | Path | None,
    cache: Path,
    mirrors: Sequence[str],
    *,
    quiet: bool = False,
) -> Path:
    """Return the path of a file with this SHA-256 (hexadecimal).

    `source` is a folder (the file is used in place), a URL (its base address) or None: the first
    of `mirrors` that serves the right bytes. A download is kept in `cache` and not repeated.
    Raises DataError with the remedy when the file cannot be had.
    """
    remedy = f'give a folder that holds {name}: --source FOLDER (source="FOLDER" in Python)'
    if source is None or str(source).lower().startswith(("http://", "https://")):
        pooch.get_logger().setLevel("WARNING" if quiet else "INFO")
        downloader = pooch.HTTPDownloader(
            progressbar=sys.stderr.isatty() and not quiet,
            timeout=TIMEOUT,
            # A server that compresses on the way would change the bytes that are checked.
            headers={"Accept-Encoding": "identity"},
        )
        errors = []
        for base in mirrors if source is None else [str(source)]:
            url = f"{base.rstrip('/')}/{name}"
            try:
                return Path(pooch.retrieve(url, checksum, name, cache, downloader=downloader))
            except (requests.RequestException, ValueError) as error:  # ValueError: the checksum
                errors.append(f"  {base}: {error}")
        raise DataError(
            f"could not download {name}:\n" + "\n".join(errors) + "\n"
            f"Without a network, {remedy}; or name another mirror: --source URL."
        )
    path = Path(source) / name
    if not path.is_file():
        there = path.parent.is_dir()
        problem = f"{source} lacks {name}" if there else f"there is no folder {source}"
        raise DataError(f"{problem}: {remedy}.")
    if (actual := pooch.file_hash(str(path))) != checksum:
        raise DataError(
            f"{path} is damaged or another file: its SHA-256 is {actual}, expected {checksum} "
            f"({path.stat().st_size:,} bytes). Replace it by a fresh copy, or leave --source out "
            "to download it."
        )
    return path
