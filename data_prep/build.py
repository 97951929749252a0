"""Write a data set as a folder of channels, and know later whether it is still whole.

A folder's manifest.json, written last, says how it was made and has every file's SHA-256.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pooch

from data_prep.errors import DataError

MANIFEST = "manifest.json"
# Files that desktops and Jupyter leave behind on their own; nobody misses them.
LITTER = {".DS_Store", ".ipynb_checkpoints"}

Channel = tuple[np.ndarray, np.ndarray]
"""Images, uint8 (n, height, width, colours), and labels, int64 (n,)."""


def build(
    out: Path,
    recipe: dict[str, Any],
    load: Callable[[], dict[str, Channel]],
    *,
    as_tfrecord: bool = False,
    quiet: bool = False,
) -> Path:
    """Make the folder `out`, or find that it is up to date; return it.

    Each channel of `load()` becomes a folder of files part-00000.npz, ... (or .tfrecord):
    recipe["shards"] of the first channel, one of the others. `recipe`, JSON values, says how the
    data are made: a folder made by another recipe is made again. What was in `out` stays until
    the new files are written. Raises DataError when `out` holds files that this package did not
    write, or cannot be written.
    """
    reason = _outdated(out, recipe)
    if reason is None:
        say(f"{out}: up to date (every checksum agrees)", quiet=quiet)
        return out
    if reason:
        say(f"{out}: making it again ({reason})", quiet=quiet)
    channels = load()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with _locked(out.parent):
            # Another process may have made it in the meantime.
            if _outdated(out, recipe) is not None:
                _write(out, recipe, channels, as_tfrecord)
    except OSError as error:
        raise DataError(
            f"could not write {out}: {error.strerror or error}. Choose a place that you may "
            'write to, with enough free space: --out FOLDER (out="FOLDER" in Python).'
        ) from error
    counts = ", ".join(f"{len(labels)} {name}" for name, (_, labels) in channels.items())
    first = next(iter(channels))
    say(f"{out}: wrote {counts} images; {first} in {recipe['shards']} files", quiet=quiet)
    return out


def say(text: str, *, quiet: bool = False) -> None:
    """Print one line of result to standard output, unless `quiet`."""
    if not quiet:
        print(text, flush=True)


def files_of(folder: Path) -> dict[str, Path]:
    """Return all files below `folder` by their path relative to it, without LITTER."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not LITTER.intersection(path.relative_to(folder).parts)
    }


def shard_counts(samples: int, shards: int) -> list[int]:
    """Split `samples` into `shards` counts that differ by at most one, larger ones first."""
    if not 1 <= shards <= samples:
        raise DataError(
            f"cannot split {samples} images into {shards} files: expected 1 to {samples} files"
        )
    small, larger = divmod(samples, shards)
    return [small + 1] * larger + [small] * (shards - larger)


def _write(
    out: Path, recipe: dict[str, Any], channels: dict[str, Channel], as_tfrecord: bool
) -> None:
    """Write all files to a folder beside `out`, then move that to its place."""
    new, old = out.with_name(f".{out.name}.new"), out.with_name(f".{out.name}.old")
    _remove(new, old)  # a killed run's
    try:
        for number, (name, channel) in enumerate(channels.items()):
            shards = 1 if number else recipe["shards"]
            _write_channel(new / name, channel, shards, as_tfrecord)
        files = {
            name: {"bytes": path.stat().st_size, "sha256": pooch.file_hash(str(path))}
            for name, path in files_of(new).items()
        }
        manifest = {"format": 1, "recipe": recipe, "files": files}
        (new / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        if out.exists():
            out.rename(old)
        new.rename(out)
    finally:
        _remove(new, old)


def _write_channel(folder: Path, channel: Channel, shards: int, as_tfrecord: bool) -> None:
    folder.mkdir(parents=True)
    images, labels = channel
    counts = shard_counts(len(images), shards)
    ends = np.cumsum(counts)
    for number, (count, end) in enumerate(zip(counts, ends, strict=True)):
        part = images[end - count : end], labels[end - count : end]
        if as_tfrecord:
            # Imported here: it needs TensorFlow, which takes seconds.
            from data_prep import tfrecord

            tfrecord.write(folder / f"part-{number:05d}.tfrecord", *part)
        else:
            # First in memory: a ZipFile on a full disk complains once more when it is collected.
            packed = io.BytesIO()
            np.savez_compressed(packed, images=part[0], labels=part[1])
            (folder / f"part-{number:05d}.npz").write_bytes(packed.getvalue())


def _outdated(out: Path, recipe: dict[str, Any]) -> str | None:
    """Say why `out` must be made again; "" if it is not there, None if it is whole.

    Raises DataError when it is or holds something that this package did not write.
    """
    found = files_of(out) if out.is_dir() else {}
    if not found and (out.is_dir() or not out.exists()):
        return ""
    try:
        manifest = json.loads(found[MANIFEST].read_text(encoding="utf-8"))
        wanted = {name: entry["sha256"] for name, entry in manifest["files"].items()}
        made_by = manifest["recipe"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        wanted, made_by = {}, None
    foreign = sorted(set(found) - set(wanted) - ({MANIFEST} if wanted else set()))
    if not wanted or foreign:
        raise DataError(
            f"{out} is in the way: it holds {', '.join(foreign[:3]) or 'something else'}. "
            "data_prep replaces only what it wrote itself. Move those files away, or choose "
            'another folder: --out FOLDER (out="FOLDER" in Python).'
        )
    missing = sorted(set(wanted) - set(found))
    if missing:
        return f"missing: {', '.join(missing[:3])}"
    if made_by != recipe:
        return "it was made with other options or another version"
    changed = [
        name for name, sha256 in wanted.items() if pooch.file_hash(str(found[name])) != sha256
    ]
    return f"{changed[0]} is not what was written" if changed else None


def _remove(*folders: Path) -> None:
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes out. The lock is on the folder itself: no lock file stays behind."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
