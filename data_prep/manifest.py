"""The manifest: what a prepared directory must hold, written last, with checksums."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

NAME = "manifest.json"
FORMAT = 1
# Files that desktops and Jupyter leave behind on their own; nobody misses them.
LITTER = {".DS_Store", ".ipynb_checkpoints"}

CURRENT, ABSENT, OUTDATED, FOREIGN = "current", "absent", "outdated", "foreign"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in lower-case hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(directory: Path, recipe: dict[str, Any]) -> None:
    """Write `manifest.json` for everything now in `directory`.

    `recipe` says how the data was made (data set, version of the code, options): a later
    run with another recipe knows that the directory is not what it would make.
    """
    files = {
        name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
        for name, path in sorted(_files(directory).items())
    }
    content = {"format": FORMAT, "recipe": recipe, "files": files}
    (directory / NAME).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def inspect(directory: Path, recipe: dict[str, Any]) -> tuple[str, str]:
    """Compare `directory` with its manifest and with `recipe`.

    Returns (state, reason). `current`: every file is there with the right checksum.
    `absent`: nothing is there. `outdated`: made by this package, but damaged or made with
    other options, so it may be replaced. `foreign`: it holds files that this package did
    not make, so it must not be replaced.
    """
    if not directory.exists() or (directory.is_dir() and not _files(directory)):
        return ABSENT, "nothing there"
    if not directory.is_dir():
        return FOREIGN, "it is a file, not a directory"
    manifest = _read(directory / NAME)
    if manifest is None:
        return FOREIGN, f"it is not empty and has no readable {NAME}"
    expected = manifest["files"]
    found = _files(directory)
    extra = sorted(set(found) - set(expected) - {NAME})
    if extra:
        return FOREIGN, f"it also holds {_some(extra)}"
    missing = sorted(set(expected) - set(found))
    if missing:
        return OUTDATED, f"missing: {_some(missing)}"
    if manifest["recipe"] != recipe:
        return OUTDATED, "it was made with other options or another version"
    for name, want in expected.items():
        path = found[name]
        if path.stat().st_size != want["bytes"] or sha256_of(path) != want["sha256"]:
            return OUTDATED, f"{name} is not what was written"
    return CURRENT, "every checksum agrees"


def _files(directory: Path) -> dict[str, Path]:
    """All files below `directory`, by their path relative to it."""
    return {
        path.relative_to(directory).as_posix(): path
        for path in directory.rglob("*")
        if not path.is_dir() and not LITTER.intersection(path.relative_to(directory).parts)
    }


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        sums = [(entry["bytes"], entry["sha256"]) for entry in content["files"].values()]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return content if content.get("format") == FORMAT and "recipe" in content and sums else None


def _some(names: list[str], most: int = 3) -> str:
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
