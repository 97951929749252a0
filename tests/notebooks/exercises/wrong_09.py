"""Plausible wrong answers to lesson 09's exercises, and what the check says of each."""

import struct

import numpy as np


def scrambled(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(32, 32, 3)


def with_the_label(record):
    return np.frombuffer(record[:-1], np.uint8).reshape(3, 32, 32).transpose(1, 2, 0)


def on_its_side(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32).transpose()


def colour_first(record):
    return np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32)


def blue_first(record):
    return (
        np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32).transpose(1, 2, 0)[..., ::-1]
    )


def as_int64(record):
    flat = np.frombuffer(record, np.uint8, offset=1).reshape(3, 32, 32)
    return flat.transpose(1, 2, 0).astype(np.int64)


def one_reads_all(files, sharded, rank, world_size, local_rank, local_size):
    return sorted(files) if (local_rank if sharded else rank) == 0 else []


def by_rank(files, sharded, rank, world_size, local_rank, local_size):
    return sorted(files)[rank::world_size]


def by_local_rank(files, sharded, rank, world_size, local_rank, local_size):
    return sorted(files)[local_rank::local_size]


def unsorted(files, sharded, rank, world_size, local_rank, local_size):
    return files[local_rank::local_size] if sharded else files[rank::world_size]


def everything(files, sharded, rank, world_size, local_rank, local_size):
    return list(files)


def no_remainder(files, sharded, rank, world_size, local_rank, local_size):
    files, size, at = sorted(files), world_size, rank
    if sharded:
        size, at = local_size, local_rank
    each = len(files) // size
    return files[at * each : (at + 1) * each]


def channel_is_enough(files, sharded, rank, world_size, local_rank, local_size):
    return list(files) if sharded else sorted(files)[rank::world_size]


def read_records(content, head=12, tail=4, size=8, form="<Q", checks=True, error=ValueError):
    """The solution, with one thing wrong. head, tail: bytes before and after the data."""
    records, at = [], 0
    while at < len(content):
        if checks and at + size > len(content):
            raise error("cut off")
        (length,) = struct.unpack(form, content[at : at + size].ljust(size, b"\0"))
        end = at + head + length + tail
        if checks and end > len(content):
            raise error("cut off")
        records.append(content[at + head : at + head + length])
        at = end
    return records


def lengths_only(content):
    return sum(map(len, read_records(content)))


def with_checksums(content):
    return [data + bytes(4) for data in read_records(content)]


def four_bytes_early(content):
    """Takes the first checksum for data."""
    records, at = [], 0
    while at < len(content):
        (length,) = struct.unpack("<Q", content[at : at + 8])
        records.append(content[at + 8 : at + 8 + length])
        at += 16 + length
    return records


def gives_up(content):
    try:
        return read_records(content)
    except ValueError:
        return []


WRONG = {
    "09.3": [
        (lambda content: read_records(content, checks=False), "and you returned .* raise Value"),
        (lambda content: read_records(content, error=IndexError), "raise ValueError, not Index"),
        (lengths_only, "return a list of bytes"),
        (with_checksums, "leave out both checksums"),
        (four_bytes_early, "begins 12 bytes after"),
        (gives_up, "raise ValueError"),
        (lambda content: read_records(content, size=1, form="<B", checks=False), "no data|wrong"),
    ],
    "09.1": [
        (scrambled, "pixels are scrambled"),
        (with_the_label, "the label"),
        (on_its_side, "exchanged"),
        (colour_first, "The shape is"),
        (blue_first, "Red and blue"),
        (as_int64, "as int64; uint8 was asked for"),
    ],
    "09.2": [
        (by_rank, "ShardedByS3Key.*nobody reads.*divided among the instances already"),
        (by_local_rank, "FullyReplicated.*times.*rank among all ranks"),
        (unsorted, "FullyReplicated.*(sort|sorted)"),
        (everything, "is read 4 times"),
        (no_remainder, "a remainder must not be left out"),
        (channel_is_enough, "ShardedByS3Key.*share its folder"),
        (lambda *given: "part-00000.npz", "return a list"),
        (one_reads_all, "another few or none: share them evenly"),
    ],
}


def a_tuple(files, sharded, rank, world_size, local_rank, local_size):
    files = tuple(sorted(files))
    return files[local_rank::local_size] if sharded else files[rank::world_size]


RIGHT = {"09.2": [a_tuple]}
