"""Objects' bytes: on their way in, where they are limited and compared with the signed hash; and in
files that are written once, read in ranges, and never changed."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import uuid
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

from werkzeug.wrappers import Request

from local_sagemaker.protocol.bodies import MAX_LINE, RequestBody, chunk_size
from local_sagemaker.protocol.errors import AwsError, other_body
from local_sagemaker.protocol.signatures import UNSIGNED, UNSIGNED_TRAILER, Signature

PIECE = 1024 * 1024  # bytes read or written at once

# A part of an object: the name of its file, and its bytes.
Segment = tuple[str, int]


class Blobs:
    """The files of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.Lock()
        self._readers = 0
        self._unwanted: list[str] = []  # removed once nobody reads

    def write(self, pieces: Iterable[bytes]) -> tuple[Segment, str]:
        """Write a new file, on disk when this returns; and its MD5, which is an object's ETag.

        Leaves none if `pieces` raises.
        """
        name, size, digest = uuid.uuid4().hex, 0, hashlib.md5(usedforsecurity=False)
        path = self.folder / name
        try:
            with path.open("xb", buffering=0) as stream:
                for piece in pieces:
                    stream.write(piece)
                    digest.update(piece)
                    size += len(piece)
                os.fsync(stream.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return (name, size), digest.hexdigest()

    def link(self, segments: Iterable[Segment]) -> list[Segment]:
        """The same bytes under new names: a copy which costs nothing."""
        links = []
        for name, size in segments:
            link = uuid.uuid4().hex
            os.link(self.folder / name, self.folder / link)
            links.append((link, size))
        return links

    def read(
        self, segments: list[Segment], start: int, length: int
    ) -> Generator[bytes, None, None]:
        """Bytes [start, start + length) of the file that `segments` are, in pieces.

        What is removed meanwhile stays on disk until this was read to its end, or closed.
        """
        pieces = self._pieces(segments, start, length)
        next(pieces)  # from now on it counts as a reader
        return pieces

    def _pieces(
        self, segments: list[Segment], start: int, length: int
    ) -> Generator[bytes, None, None]:
        with self._lock:
            self._readers += 1
        try:
            yield b""
            for name, size in segments:
                left = min(size - start, length)
                if left > 0:
                    length -= left
                    with (self.folder / name).open("rb", buffering=0) as stream:
                        stream.seek(start)
                        while left and (piece := stream.read(min(left, PIECE))):
                            yield piece
                            left -= len(piece)
                start = max(0, start - size)
        finally:
            with self._lock:
                self._readers -= 1
            self.remove(())

    def remove(self, segments: Iterable[Segment]) -> None:
        """Remove files as soon as nobody reads."""
        with self._lock:
            self._unwanted += [name for name, _ in segments]
            if not self._readers:
                for name in self._unwanted:
                    with contextlib.suppress(OSError):
                        (self.folder / name).unlink()
                self._unwanted.clear()

    def keep_only(self, used: set[str]) -> None:
        """Remove what no object has: an upload which a crash cut off left it."""
        for path in self.folder.iterdir():
            if path.name not in used:
                path.unlink(missing_ok=True)


class Body:
    """The body of a request that stores bytes. Iterate over its content once.

    limit: bytes of content. Raises AwsError for more, and for bytes other than those signed.
    """

    def __init__(self, request: Request, limit: int, signature: Signature) -> None:
        self.stream: RequestBody = request.environ["wsgi.input"]
        self.limit = limit
        self.payload_hash = signature.payload_hash

    def __iter__(self) -> Iterator[bytes]:
        payload = hashlib.sha256()
        hashed = self.payload_hash not in UNSIGNED
        length = 0
        for piece in self._pieces():
            length += len(piece)
            if length > self.limit:
                raise AwsError("EntityTooLarge", f"An object has at most {self.limit} bytes.")
            if hashed:
                payload.update(piece)
            yield piece
        if hashed and payload.hexdigest() != self.payload_hash:
            raise other_body()

    def _pieces(self) -> Iterator[bytes]:
        stream = self.stream
        try:
            if self.payload_hash == UNSIGNED_TRAILER:
                yield from self._chunks()
                while stream.readline(MAX_LINE).strip():  # its checksum
                    pass
                return
            while piece := stream.read(PIECE):
                yield piece
            if stream.left:
                raise AwsError("IncompleteBody", f"The body ended {stream.left} bytes early.")
        except TimeoutError as error:
            raise AwsError("RequestTimeout", "The body did not come: nothing was sent.") from error

    def _chunks(self) -> Iterator[bytes]:
        """The content of AWS's own chunks (aws-chunked), which are not HTTP's."""
        while left := chunk_size(self.stream.readline(MAX_LINE)):
            while left and (piece := self.stream.read(min(left, PIECE))):
                yield piece
                left -= len(piece)
            if left or self.stream.readline(MAX_LINE).strip():
                raise AwsError("IncompleteBody", "A chunk is shorter than it says.")
