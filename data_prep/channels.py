"""Write a data set as a folder of channels, and each channel as files of images and labels."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from data_prep.errors import DataError

# Files that desktops and Jupyter leave behind on their own; nobody misses them.
LITTER = {".DS_Store", ".ipynb_checkpoints"}

Channel = tuple[np.ndarray, np.ndarray]
"""Images, uint8 (n, height, width, colours), and labels, int64 (n,)."""


def write_channels(
    out: Path,
    load: Callable[[], dict[str, Channel]],
    shards: dict[str, int],
    *,
    as_tfrecord: bool = False,
    quiet: bool = False,
) -> Path:
    """Make the folder `out`, unless it is there already; return it.

    shards: the number of files in each channel: part-00000.npz, ... (or .tfrecord). The folder
    appears when all its files are written. So a folder with these files is complete, and is left
    as it is; with another number of files it is made again. Raises DataError when `out` holds
    files that this package did not write, or cannot be written.
    """
    suffix = "tfrecord" if as_tfrecord else "npz"
    expected = {
        f"{name}/part-{number:05d}.{suffix}"
        for name, count in shards.items()
        for number in range(count)
    }
    present = set(files_below(out))
    if present == expected:
        say(f"{out}: is there already", quiet=quiet)
        return out
    foreign = sorted(name for name in present if not _is_part(name, shards))
    if foreign or (out.exists() and not out.is_dir()):
        raise DataError(
            f"{out} is in the way: it holds {', '.join(foreign[:3]) or 'something else'}. "
            "data_prep replaces only what it wrote itself. Move those files away, or choose "
            'another folder: --out FOLDER (out="FOLDER" in Python).'
        )
    channels = load()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as folder:
            new = Path(folder) / out.name
            for name, channel in channels.items():
                _write_channel(new / name, channel, shards[name], suffix)
            shutil.rmtree(out, ignore_errors=True)
            _move(new, out, expected)
    except OSError as error:
        raise DataError(
            f"could not write {out}: {error.strerror or error}. Choose a place that you may "
            'write to, with enough free space: --out FOLDER (out="FOLDER" in Python).'
        ) from error
    counts = ", ".join(f"{len(labels)} {name}" for name, (_, labels) in channels.items())
    say(f"{out}: wrote {counts} images", quiet=quiet)
    return out


def say(text: str, *, quiet: bool = False) -> None:
    """Print one line of result to standard output, unless `quiet`."""
    if not quiet:
        print(text, flush=True)


def files_below(folder: Path) -> dict[str, Path]:
    """All files below `folder` by their path relative to it, without LITTER."""
    return {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not LITTER.intersection(path.relative_to(folder).parts)
    }


def _is_part(name: str, channels: dict[str, int]) -> bool:
    """Whether the file may have been written by this package; manifest.json: until 2026-11."""
    path = Path(name)
    written = path.stem.startswith("part-") and path.suffix in (".npz", ".tfrecord")
    return name == "manifest.json" or (written and path.parent.name in channels)


def _move(new: Path, out: Path, expected: set[str]) -> None:
    try:
        new.rename(out)
    except OSError:
        if set(files_below(out)) != expected:  # else another process was a moment faster
            raise


def _write_channel(folder: Path, channel: Channel, shards: int, suffix: str) -> None:
    images, labels = channel
    folder.mkdir(parents=True)
    parts = zip(np.array_split(images, shards), np.array_split(labels, shards), strict=True)
    for number, part in enumerate(parts):
        path = folder / f"part-{number:05d}.{suffix}"
        if suffix == "tfrecord":
            # Imported here: it needs TensorFlow, which takes seconds.
            from data_prep import tfrecord

            tfrecord.write(path, *part)
        else:
            # First in memory: a ZipFile on a full disk complains once more when it is collected.
            packed = io.BytesIO()
            np.savez_compressed(packed, images=part[0], labels=part[1])
            path.write_bytes(packed.getvalue())
