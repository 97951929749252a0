"""The original files of a data set: from a folder, or by pooch, which checks and caches them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pooch
import requests

from data_prep.channels import DataError

TIMEOUT = (10.0, 30.0)  # seconds to connect, and without a byte


def fetch(
    checksums: Mapping[str, str],
    source: str | Path | None,
    cache: Path,
    mirrors: Sequence[str],
    *,
    quiet: bool = False,
) -> dict[str, Path]:
    """Return name -> path of the files in `checksums` (name -> SHA-256, hexadecimal).

    `source` is a folder (its files are used in place), a URL (base address of the files) or
    None: the first of `mirrors` that serves the right bytes. Downloads are kept in `cache`
    and not repeated. Raises DataError with the remedy when a file cannot be had.
    """
    if source is None or str(source).lower().startswith(("http://", "https://")):
        pooch.get_logger().setLevel("WARNING" if quiet else "INFO")
        bases = mirrors if source is None else [str(source)]
        return {name: _download(name, checksums, bases, cache, quiet) for name in checksums}
    folder = Path(source)
    if missing := [name for name in checksums if not (folder / name).is_file()]:
        problem = f"{folder} lacks {', '.join(missing)}"
        if not folder.is_dir():
            problem = f"there is no folder {folder}"
        raise DataError(f"{problem}: {_remedy(checksums)}.")
    paths = {name: folder / name for name in checksums}
    for name, path in paths.items():
        actual = pooch.file_hash(str(path))
        if actual != checksums[name]:
            raise DataError(
                f"{path} is damaged or another file: its SHA-256 is {actual}, expected "
                f"{checksums[name]} ({path.stat().st_size:,} bytes). Replace it by a fresh copy, "
                "or leave --source out to download it."
            )
    return paths


def _download(
    name: str, checksums: Mapping[str, str], bases: Sequence[str], cache: Path, quiet: bool
) -> Path:
    downloader = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty() and not quiet,
        timeout=TIMEOUT,
        # A server that compresses on the way would change the bytes that are checked.
        headers={"Accept-Encoding": "identity"},
    )
    errors = []
    for base in bases:
        url = f"{base.rstrip('/')}/{name}"
        try:
            return Path(pooch.retrieve(url, checksums[name], name, cache, downloader=downloader))
        except (requests.RequestException, ValueError) as error:  # ValueError: the checksum
            errors.append(f"  {base}: {error}")
    raise DataError(
        f"could not download {name}:\n" + "\n".join(errors) + "\n"
        f"Without a network, {_remedy(checksums)}; or name another mirror: --source URL."
    )


def _remedy(names: Mapping[str, str]) -> str:
    return (
        f'give a folder that holds {", ".join(names)}: --source FOLDER (source="FOLDER" in Python)'
    )
