"""A request's body: as a stream, read whole and bounded, and parsed as JSON."""

from __future__ import annotations

import json
import re
from io import BufferedIOBase

from local_sagemaker.protocol.errors import AwsError

PIECE = 1024 * 1024
MAX_LINE = 4096  # bytes of a line between chunks


class RequestBody:
    """A body as it comes: as many bytes as announced, or HTTP's chunks unwrapped.

    werkzeug's own reader of chunks (3.1.9) loops forever on a body that ends early.

    left: bytes that nobody has read yet, of the body or of the current chunk. Reading raises
    AwsError for a length that is no number and for malformed chunks, and OSError.
    """

    def __init__(self, stream: BufferedIOBase, announced: str, chunked: bool) -> None:
        self.stream, self.chunked, self.announced = stream, chunked, announced
        known = announced.isascii() and announced.isdigit() and len(announced) <= 18
        self.valid = chunked or known
        self.left = int(announced) if known and not chunked else 0
        self.chunk_follows = chunked

    def read(self, size: int) -> bytes:
        self._begin()
        return self._count(self.stream.read(min(size, self.left)) if self.left else b"")

    def readline(self, size: int) -> bytes:
        line = b""
        while len(line) < size and not line.endswith(b"\n") and (byte := self.read(1)):
            line += byte
        return line

    def _begin(self) -> None:
        """Come to bytes that can be read, if there are any more."""
        if not self.valid:
            raise AwsError(
                "InvalidRequest", f"Content-Length is not a number: {self.announced[:40]}"
            )
        if self.chunk_follows and not self.left:
            self.left = chunk_size(self.stream.readline(MAX_LINE))
            if not self.left:
                self.chunk_follows = False
                while self.stream.readline(MAX_LINE).strip():  # headers may follow
                    pass

    def _count(self, data: bytes) -> bytes:
        self.left -= len(data)
        if self.chunked and data and not self.left and self.stream.readline(2).strip():
            raise AwsError("IncompleteBody", "A chunk is not as long as it says.")
        return data


def chunk_size(line: bytes) -> int:
    """The size that the line before a chunk tells. Raises AwsError (IncompleteBody)."""
    digits = line.partition(b";")[0].strip()
    if not line.endswith(b"\n") or not re.fullmatch(rb"[0-9a-fA-F]{1,15}", digits):
        raise AwsError("IncompleteBody", f"A chunk's size is not a number: {line[:40]!r}")
    return int(digits, 16)


def whole_body(environ: dict, limit: int) -> bytes:
    """The whole body. It is read before the state's lock is taken: a slow client must not
    hold it. limit: bytes.

    Raises AwsError for one that is too long, shorter than its client said, too slow, or not in
    chunks although it says so; ConnectionError where the client is gone.
    """
    body: RequestBody = environ["wsgi.input"]
    pieces, length = [], 0
    try:
        while body.left <= limit and (piece := body.read(PIECE)):
            pieces.append(piece)
            length += len(piece)
            if length > limit:
                break
    except ConnectionError:
        raise
    except TimeoutError as error:
        raise AwsError("RequestTimeout", "The body did not come: nothing was sent.") from error
    except OSError as error:
        raise AwsError("IncompleteBody", f"The body cannot be read: {error}") from error
    if length + body.left > limit:
        raise AwsError("RequestEntityTooLarge", f"The request is over {limit} bytes.", 413)
    if body.left:
        raise AwsError("IncompleteBody", f"The body ended {body.left} bytes early.")
    return b"".join(pieces)


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
    raise ValueError(f"{name} is not a JSON number")
