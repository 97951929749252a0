"""Checks of lesson 09's exercises."""

from __future__ import annotations

import struct
from collections import Counter

import numpy as np

from workshop.lesson.check import Wrong, exercise

SIDE, COLOURS = 32, 3
# (instances, ranks of each, files)
LAYOUTS = ((2, 2, 8), (2, 2, 7), (3, 1, 7), (1, 4, 6), (4, 1, 9), (3, 2, 2))


@exercise("09.1")
def picture_of(answer) -> str:
    """A picture whose every byte is known, as a CIFAR-10 file holds it."""
    picture = np.random.default_rng(7).integers(0, 256, (SIDE, SIDE, COLOURS), dtype=np.uint8)
    flat = picture.transpose(2, 0, 1).tobytes()
    returned = np.asarray(answer(bytes([3]) + flat))
    if returned.shape != picture.shape:
        raise Wrong(
            f"The shape is {returned.shape}; (32, 32, 3) was asked for: row, column, colour."
        )
    if np.array_equal(returned, picture):
        if returned.dtype != np.uint8:
            raise Wrong(f"The pixels are right, as {returned.dtype}; uint8 was asked for.")
        return "Row, column, colour, and every pixel where it belongs."
    pixels = np.frombuffer(flat, np.uint8)
    if np.array_equal(returned, pixels.reshape(SIDE, SIDE, COLOURS)):
        raise Wrong(
            "The shape is right and the pixels are scrambled: three neighbouring bytes are three "
            "pixels of one colour, not the three colours of one pixel. Colour comes first."
        )
    if np.array_equal(returned, pixels.reshape(COLOURS, SIDE, SIDE).transpose(2, 1, 0)):
        raise Wrong("Rows and columns are exchanged: the picture lies on its side.")
    if np.array_equal(returned[..., ::-1], picture):
        raise Wrong("Red and blue are exchanged: the file has red first.")
    raise Wrong("The pixels are not where they belong. Is the first byte, the label, left out?")


@exercise("09.2")
def files_of(answer) -> str:
    """Both kinds of channel in several layouts; each instance lists its folder in another order."""
    for instances, each, count in LAYOUTS:
        for sharded in (False, True):
            _check_layout(answer, instances, each, count, sharded)
    return "Each file is read once, whoever divides, and the ranks share them evenly."


def _check_layout(answer, instances: int, each: int, count: int, sharded: bool) -> None:
    files = [f"part-{number:05d}.npz" for number in range(count)]
    kind = "ShardedByS3Key" if sharded else "FullyReplicated"
    where = f"{kind}, {instances} instance(s) with {each} rank(s), {count} files"
    read: Counter = Counter()
    uneven = False
    for instance in range(instances):
        folder = files[instance::instances] if sharded else list(files)
        first = instance % max(len(folder), 1)
        folder = [*folder[first:], *folder[:first]]
        counts = []
        for local_rank in range(each):
            rank = instance * each + local_rank
            got = answer(list(folder), sharded, rank, instances * each, local_rank, each)
            if not isinstance(got, list | tuple):
                raise Wrong(f"It returned {type(got).__name__}; return a list of names.")
            if foreign := set(got) - set(folder):
                raise Wrong(f"{where}: {min(foreign)} is not in this instance's folder.")
            read.update(got)
            counts.append(len(got))
        uneven = uneven or max(counts) - min(counts) > 1
    if never := sorted(set(files) - set(read)):
        raise Wrong(f"{where}: nobody reads {never[0]}. {_unread_reason(sharded)}")
    if often := [name for name in files if read[name] > 1]:
        raise Wrong(
            f"{where}: {often[0]} is read {read[often[0]]} times. {_repeated_reason(sharded)}"
        )
    if uneven:
        raise Wrong(
            f"{where}: each file is read once, but one rank reads many and another few or none: "
            "share them evenly."
        )


def _unread_reason(sharded: bool) -> str:
    if sharded:
        return (
            "The channel has divided among the instances already; divide only among the ranks of "
            "this instance."
        )
    return (
        "All instances must count the files in the same order (sort them), and a remainder must "
        "not be left out."
    )


def _repeated_reason(sharded: bool) -> str:
    if sharded:
        return "The ranks of one instance share its folder: divide among them."
    return "Every instance has all files: divide by the rank among all ranks, in a sorted order."


def _tfrecord(records: list[bytes]) -> bytes:
    """A file of these records. The checksums are four bytes that nobody should read."""
    parts = (struct.pack("<Q", len(data)) + b"\xff\xfe\xfd\xfc" + data for data in records)
    return b"".join(part + b"\xfb\xfa\xf9\xf8" for part in parts)


@exercise("09.3")
def records_of(answer) -> str:
    """Files of no record, one, several, an empty one, a long one; and files that are cut off."""
    long = bytes(range(256)) * 300  # its length needs more than one byte
    for records in ([], [b"abc"], [b"a", b"", b"xyz" * 7], [long, b"after the long record"]):
        returned = answer(_tfrecord(records))
        if not isinstance(returned, list | tuple):
            raise Wrong(f"It returned {type(returned).__name__}; return a list of bytes.")
        if list(returned) != records:
            lengths = [len(data) for data in records]
            raise Wrong(f"{_records_reason(returned, records)} (The records have {lengths} bytes.)")
    whole = _tfrecord([b"first", b"second"])
    for left_out, where in ((1, "checksum"), (7, "data"), (17, "length"), (11, "first checksum")):
        try:
            returned = answer(whole[:-left_out])
        except ValueError:
            continue
        except Exception as error:
            message = f"The file ends in a record's {where}: raise ValueError, not {error!r}."
            raise Wrong(message) from error
        raise Wrong(
            f"The file ends in the {where} of its second record, and you returned {returned!r}: "
            "raise ValueError."
        )
    return "Every record, and a file that is cut off is noticed."


def _records_reason(returned, records: list[bytes]) -> str:
    if len(returned) != len(records):
        return f"{len(returned)} records, and there are {len(records)}: 16 bytes are no data."
    if [len(data) for data in returned] == [len(data) for data in records]:
        return "As many bytes as asked for, but others: the data begins 12 bytes after the record."
    return "The lengths of the data are wrong: leave out both checksums."
