"""Unpack an untrusted tar archive: nothing may end up outside its folder."""

from __future__ import annotations

import os
import shutil
import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, folder: Path, limit: int) -> None:
    """Unpack all of it into `folder`. limit: bytes of all files together.

    Raises tarfile.TarError for a member that would leave the folder (an absolute name, "..", a
    link outwards), for a device, and for more than `limit` bytes or half of the disk's free ones.
    """
    limit = min(limit, shutil.disk_usage(folder).free // 2)
    size = 0
    for member in archive:  # nothing is unpacked yet
        size += member.size
        if size > limit:
            raise tarfile.ExtractError(
                f"it unpacks to more than {limit / 1024**3:.1f} GB, the most that the "
                "emulator takes (or half of what is free on the disk)"
            )
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    for member in archive:  # Python 3.11.3 and older have no filters
        _check(member, os.path.realpath(folder))
        archive.extract(member, folder, set_attrs=False)


def _check(member: tarfile.TarInfo, root: str) -> None:
    if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
        raise tarfile.ExtractError(f"{member.name!r} is a special file")
    # Of the real path: a link that was unpacked before may lead elsewhere.
    reached = [os.path.join(root, member.name)]
    if member.issym():
        reached.append(os.path.join(os.path.dirname(reached[0]), member.linkname))
    elif member.islnk():
        reached.append(os.path.join(root, member.linkname))
    for path in reached:
        if os.path.commonpath([root, os.path.realpath(path)]) != root:
            raise tarfile.ExtractError(f"{member.name!r} would be outside the destination")
