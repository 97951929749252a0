"""The frame of every `prepare`: look, build in a temporary place, sign, move."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_prep import manifest
from data_prep.atomic import building
from data_prep.errors import DataError
from data_prep.progress import say


def build(
    out: Path, recipe: dict[str, Any], make: Callable[[Path], str], *, quiet: bool = False
) -> Path:
    """Make `out` by `make(temporary_directory)`, or find that it is up to date.

    `make` returns one line that says what it wrote. Raises DataError when `out` holds
    files that this package did not write, or cannot be written.
    """
    state, reason = manifest.inspect(out, recipe)
    if state == manifest.CURRENT:
        say(f"{out}: up to date ({reason})", quiet=quiet)
        return out
    if state == manifest.FOREIGN:
        raise DataError(
            f"{out} is in the way: {reason}. data_prep replaces only what it wrote itself. "
            "Move those files away, or choose another folder: "
            '--out FOLDER (out="FOLDER" in Python).'
        )
    if state == manifest.OUTDATED:
        say(f"{out}: making it again ({reason})", quiet=quiet)
    with building(out) as temporary:
        wrote = make(temporary)
        manifest.write(temporary, recipe)
    say(f"{out}: {wrote}", quiet=quiet)
    return out


def shard_counts(samples: int, shards: int) -> list[int]:
    """Split `samples` into `shards` counts that differ by at most one, larger ones first."""
    if not 1 <= shards <= samples:
        raise DataError(
            f"cannot split {samples} images into {shards} files: expected 1 to {samples} files"
        )
    small, larger = divmod(samples, shards)
    return [small + 1] * larger + [small] * (shards - larger)
