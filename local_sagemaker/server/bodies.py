"""A request's body, read whole and bounded, and what it says as JSON."""

from __future__ import annotations

import json
import re
from typing import BinaryIO

from local_sagemaker.server.errors import AwsError

PIECE = 1024 * 1024
LINE = 1024  # bytes of a line between chunks, at most
IN_CHUNKS = "local_sagemaker.in_chunks"  # in environ: the stream that a body comes from so
BAD_URI = "local_sagemaker.bad_uri"  # in environ: why the request's address is none


def whole_body(environ: dict, limit: int) -> bytes:
    """The whole body. It is read before the state's lock is taken: a slow client must not
    hold it. limit: bytes.

    Raises AwsError for one that is too long, shorter than its client said, too slow, or not in
    chunks although it says so; ConnectionError where the client is gone.
    """
    try:
        if IN_CHUNKS in environ:
            return _chunks(environ[IN_CHUNKS], limit)
        return _announced(environ, limit)
    except ConnectionError:
        raise
    except TimeoutError as error:
        raise AwsError("RequestTimeout", "The body did not come: nothing was sent.") from error
    except (OSError, ValueError) as error:  # a chunk that is none
        raise AwsError("IncompleteBody", f"The body cannot be read: {error}") from error


def _announced(environ: dict, limit: int) -> bytes:
    said = environ.get("CONTENT_LENGTH") or "0"
    if not (said.isascii() and said.isdigit()):
        raise AwsError("InvalidRequest", f"Content-Length is no number: {said[:40]}")
    if len(said) > 18 or int(said) > limit:  # 10 ** 18 is above every limit
        raise _too_large(limit)
    length, pieces = int(said), []
    while length and (piece := environ["wsgi.input"].read(min(length, PIECE))):
        pieces.append(piece)
        length -= len(piece)
    if length:
        raise AwsError("IncompleteBody", f"The body ended {length} bytes early.")
    return b"".join(pieces)


def _chunks(stream: BinaryIO, limit: int) -> bytes:
    """A body in chunks: a line with each one's size in hexadecimal, its bytes, an empty line.

    Not by werkzeug's own reader (3.1.9): a chunk that ends early crashed the whole process there.
    """
    pieces, length = [], 0
    while size := _size_of_chunk(stream.readline(LINE)):
        length += size
        if length > limit:
            raise _too_large(limit)
        while size and (piece := stream.read(min(size, PIECE))):
            pieces.append(piece)
            size -= len(piece)
        if size or stream.readline(2).strip():
            raise ValueError("a chunk is not as long as it says")
    while stream.readline(LINE).strip():  # headers may follow
        pass
    return b"".join(pieces)


def _size_of_chunk(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not line.endswith(b"\n") or not re.fullmatch(rb"[0-9a-fA-F]{1,15}", digits):
        raise ValueError(f"a chunk's size is no number: {line[:40]!r}")
    return int(digits, 16)


def _too_large(limit: int) -> AwsError:
    return AwsError("RequestEntityTooLarge", f"The request is over {limit} bytes.", 413)


def json_object(raw: bytes) -> dict:
    """The JSON object that `raw` holds. Raises AwsError (SerializationException) for another."""
    try:
        body = json.loads(raw or b"{}", parse_constant=_no_number)
        json.dumps(body, ensure_ascii=False).encode()  # half a surrogate pair is no text
    except (ValueError, RecursionError) as error:
        raise AwsError("SerializationException", f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise AwsError("SerializationException", "The body is not a JSON object.")
    return body


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON's")
