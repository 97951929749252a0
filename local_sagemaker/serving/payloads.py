"""Cuts an input object of a transform job into payloads, each the body of one request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 1024 * 1024


class TooLarge(Exception):
    """A record that is over the limit for one request."""


def payloads(path: Path, lines: bool, several: bool, limit: int) -> Iterator[bytes]:
    """The payloads of a file, in its order.

    lines: split it at line ends (SplitType Line). several: as many records in a payload as the
    limit allows (BatchStrategy MultiRecord). limit: bytes; 0 for none. Raises TooLarge.
    """
    if not lines:
        whole = path.read_bytes()
        _check(whole, limit, path.name)
        yield whole
        return
    batch: list[bytes] = []
    size = 0
    for number, record in enumerate(_records(path), 1):
        _check(record, limit, f"record {number} of {path.name}")
        if batch and (not several or (limit and size + 1 + len(record) > limit)):
            yield b"\n".join(batch)
            batch, size = [], 0
        batch.append(record)
        size += len(record) + (len(batch) > 1)
    if batch:
        yield b"\n".join(batch)


def _records(path: Path) -> Iterator[bytes]:
    """The lines of a file without their ends. An empty line is no record."""
    with path.open("rb") as stream:
        for line in stream:
            if record := line.rstrip(b"\r\n"):
                yield record


def _check(payload: bytes, limit: int, what: str) -> None:
    if limit and len(payload) > limit:
        raise TooLarge(
            f"{what} has {len(payload)} bytes; MaxPayloadInMB allows {limit}. Split the input "
            "(SplitType Line), or raise MaxPayloadInMB."
        )
