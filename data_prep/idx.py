"""Read IDX files, the format in which MNIST is published.

Big-endian: two zero bytes, the element type (8: unsigned byte), the number of
dimensions, one 32-bit size per dimension, then the elements.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from data_prep.errors import DataError

UNSIGNED_BYTE = 8


def read(path: Path, dimensions: int, max_bytes: int) -> np.ndarray:
    """Return the array in the gzip-compressed IDX file `path`, uint8, `dimensions` axes.

    `max_bytes` bounds the unpacked size. Raises DataError when the file is not gzip, is
    cut short, is too long, or its header does not describe its content.
    """
    try:
        with gzip.open(path) as file:
            data = file.read(max_bytes + 1)
    except EOFError as error:
        raise DataError(f"{path.name} is cut short. Fetch it again.") from error
    except (OSError, zlib.error) as error:
        raise DataError(f"{path.name} is not a sound gzip file ({error})") from error
    if len(data) > max_bytes:
        raise DataError(f"{path.name} unpacks to more than {max_bytes:,} bytes")
    header = 4 + 4 * dimensions
    if len(data) < header:
        raise DataError(f"{path.name} is cut short: {len(data)} bytes, header needs {header}")
    magic, *shape = struct.unpack(f">{1 + dimensions}I", data[:header])
    expected = UNSIGNED_BYTE << 8 | dimensions
    if magic != expected:
        raise DataError(
            f"{path.name} is not an IDX file of {dimensions} dimension(s): it begins with "
            f"{magic:#010x}, expected {expected:#010x}. Were images and labels exchanged?"
        )
    if math.prod(shape) != len(data) - header:
        raise DataError(
            f"{path.name} holds {len(data) - header:,} values, but its header announces "
            f"{' x '.join(map(str, shape))} = {math.prod(shape):,}"
        )
    return np.frombuffer(data, np.uint8, offset=header).reshape(shape)
