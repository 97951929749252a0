"""Where the original files come from: a local folder, a URL, or the known mirrors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from data_prep.download import Policy, fetch
from data_prep.errors import DataError
from data_prep.manifest import sha256_of
from data_prep.progress import say


@dataclass(frozen=True)
class Original:
    """One file as its authors published it.

    max_bytes: a longer file is refused before it fills the disk; check: raises DataError
    when the content is wrong; mirrors: base URLs, each ending in "/".
    """

    name: str
    max_bytes: int
    check: Callable[[Path], None]
    mirrors: Sequence[str]


def check_sha256(expected: str) -> Callable[[Path], None]:
    """Return a check that compares a file's SHA-256 with `expected`."""

    def check(path: Path) -> None:
        found = sha256_of(path)
        if found != expected:
            raise DataError(
                f"wrong content: SHA-256 is {found}, expected {expected} "
                f"({path.stat().st_size:,} bytes)"
            )

    return check


def is_url(source: str | Path) -> bool:
    """Say whether `source` is an http(s) address rather than a folder."""
    return str(source).lower().startswith(("http://", "https://"))


def obtain(
    originals: Sequence[Original],
    source: str | Path | None,
    cache: Path,
    *,
    policy: Policy | None = None,
    quiet: bool = False,
) -> dict[str, Path]:
    """Return name -> path of checked files.

    `source` is a folder (read in place), a URL (base address of the files) or None: the
    cache, then the mirrors. Downloads are kept in `cache`. Raises DataError with the way
    out when a file cannot be had or has the wrong content.
    """
    if source is not None and not is_url(source):
        return _from_folder(originals, Path(source))
    paths = {}
    for original in originals:
        kept = cache / original.name
        if not _is_good(original, kept):
            bases = [str(source).rstrip("/") + "/"] if source else original.mirrors
            say(f"downloading {original.name}", quiet=quiet)
            _download(original, bases, kept, _names(originals), policy, quiet)
        paths[original.name] = kept
    return paths


def _from_folder(originals: Sequence[Original], folder: Path) -> dict[str, Path]:
    wanted = _names(originals)
    if not folder.is_dir():
        raise DataError(
            f"there is no folder {folder}. Give a folder that holds {wanted}: "
            '--source FOLDER (source="FOLDER" in Python).'
        )
    missing = [item.name for item in originals if not (folder / item.name).is_file()]
    if missing:
        raise DataError(
            f"{folder} lacks {', '.join(missing)}. Give a folder that holds {wanted} with "
            '--source FOLDER (source="FOLDER" in Python).'
        )
    for original in originals:
        path = folder / original.name
        try:
            original.check(path)
        except (DataError, OSError) as error:
            raise DataError(
                f"{path} cannot be used: {error}. Replace it by a fresh copy, or leave "
                "--source out to download it."
            ) from error
    return {item.name: folder / item.name for item in originals}


def _is_good(original: Original, path: Path) -> bool:
    try:
        original.check(path)
    except (DataError, OSError):
        return False
    return True


def _download(
    original: Original,
    bases: Sequence[str],
    target: Path,
    wanted: str,
    policy: Policy | None,
    quiet: bool,
) -> None:
    fresh = [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()]
    urls = [base + original.name for base in bases]
    try:
        fetch(urls, target, original.check, original.max_bytes, policy=policy, quiet=quiet)
    except BaseException as error:
        for folder in fresh:
            # Only the empty folders that this call made go away again.
            with suppress(OSError):
                folder.rmdir()
        if not isinstance(error, DataError):
            raise
        raise DataError(
            f"{error}\nWithout a network, give a folder that holds {wanted}: "
            '--source FOLDER (source="FOLDER" in Python); or another mirror: --source URL.'
        ) from error


def _names(originals: Sequence[Original]) -> str:
    names = [item.name for item in originals]
    count = {1: "the file", 4: "the four files"}.get(len(names), f"the {len(names)} files")
    return f"{count} {', '.join(names)}"
