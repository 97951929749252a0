"""The original files of a data set: from a folder, or by pooch, which checks and caches them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pooch
import requests

from data_prep.errors import DataError

TIMEOUT = (10.0, 30.0)  # seconds to connect, and without a byte
RETRIES = 1  # of each mirror


def is_url(source: str | Path) -> bool:
    """Say whether `source` is an http(s) address rather than a folder."""
    return str(source).lower().startswith(("http://", "https://"))


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
    if source is not None and not is_url(source):
        return _from_folder(checksums, Path(source))
    pooch.get_logger().setLevel("WARNING" if quiet else "INFO")
    bases = mirrors if source is None else [str(source)]
    return {name: _download(name, checksums, bases, cache, quiet) for name in checksums}


def _from_folder(checksums: Mapping[str, str], folder: Path) -> dict[str, Path]:
    lacking = [name for name in checksums if not (folder / name).is_file()]
    if lacking:
        problem = (
            f"{folder} lacks {', '.join(lacking)}"
            if folder.is_dir()
            else f"there is no folder {folder}"
        )
        raise DataError(f"{problem}: {_remedy(checksums)}.")
    paths = {name: folder / name for name in checksums}
    for name, path in paths.items():
        found = pooch.file_hash(str(path))
        if found != checksums[name]:
            raise DataError(
                f"{path} is damaged or another file: its SHA-256 is {found}, expected "
                f"{checksums[name]} ({path.stat().st_size:,} bytes). Replace it by a fresh copy, "
                "or leave --source out to download it."
            )
    return paths


def _download(
    name: str, checksums: Mapping[str, str], bases: Sequence[str], cache: Path, quiet: bool
) -> Path:
    answers = []
    for base in bases:
        mirror = pooch.create(
            path=cache,
            base_url=base.rstrip("/") + "/",
            registry={name: checksums[name]},
            retry_if_failed=RETRIES,
        )
        get = pooch.HTTPDownloader(
            progressbar=sys.stderr.isatty() and not quiet,
            chunk_size=1 << 16,
            timeout=TIMEOUT,
            # A server that compresses on the way would change the bytes that are checked.
            headers={"Accept-Encoding": "identity"},
        )
        try:
            return Path(mirror.fetch(name, downloader=get))
        except (requests.RequestException, ValueError) as error:  # ValueError: the checksum
            answers.append(f"  {base}: {error}")
    raise DataError(
        f"could not download {name}:\n" + "\n".join(answers) + "\n"
        f"Without a network, {_remedy(checksums)}; or name another mirror: --source URL."
    )


def _remedy(names: Mapping[str, str]) -> str:
    return (
        f'give a folder that holds {", ".join(names)}: --source FOLDER (source="FOLDER" in Python)'
    )
