"""An object's bytes on their way in: unwrapped, bounded, and compared with what was promised."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any

from local_sagemaker.protocol.bodies import LINE, RequestBody, chunk_size
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.signatures import Signature
from local_sagemaker.s3.blobs import PIECE

SIGNED = re.compile(r"[0-9a-f]{64}")


class Crc32:
    """zlib's CRC-32 with hashlib's two methods."""

    def __init__(self) -> None:
        self.value = 0

    def update(self, data: bytes) -> None:
        self.value = zlib.crc32(data, self.value)

    def digest(self) -> bytes:
        return self.value.to_bytes(4, "big")


# Header -> what computes it. Python computes no CRC32C and no CRC64NVME: those are not compared.
PROMISES: dict[str, Any] = {
    "content-md5": hashlib.md5,
    "x-amz-checksum-crc32": Crc32,
    "x-amz-checksum-sha1": hashlib.sha1,
    "x-amz-checksum-sha256": hashlib.sha256,
}


class Body:
    """The body of a request that stores bytes. Iterate it once: pieces of its content.

    limit: bytes of content. Afterwards `etag` is known.

    Raises AwsError: what arrives is not what the client announced, or too much.
    """

    def __init__(self, environ: dict, limit: int, signature: Signature) -> None:
        self.stream: RequestBody = environ["wsgi.input"]
        self.limit, self.signature = limit, signature
        self.headers = {
            name[5:].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        self.md5 = hashlib.md5(usedforsecurity=False)

    @property
    def etag(self) -> str:
        return self.md5.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        promised = self.headers.get("x-amz-content-sha256", "")
        whole = hashlib.sha256()
        trailing = self.headers.get("x-amz-trailer", "").lower()
        digests = {
            name: made()
            for name, made in PROMISES.items()
            if self.headers.get(name) or name == trailing
        }
        computed = [self.md5, *digests.values(), *([whole] if SIGNED.fullmatch(promised) else [])]
        trailers: dict[str, str] = {}
        length = 0
        for piece in self._pieces(promised, trailers):
            length += len(piece)
            if length > self.limit:
                raise AwsError("EntityTooLarge", f"An object has at most {self.limit} bytes.")
            for one in computed:
                one.update(piece)
            yield piece
        if SIGNED.fullmatch(promised) and whole.hexdigest() != promised:
            raise AwsError(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
        for name, digest in digests.items():
            said = self.headers.get(name) or trailers.get(name)
            if said and said != base64.b64encode(digest.digest()).decode():
                raise AwsError("BadDigest", f"The {name} you specified did not match what came.")

    def _pieces(self, promised: str, trailers: dict[str, str]) -> Iterator[bytes]:
        stream = self.stream
        try:
            if not promised.startswith("STREAMING-"):
                while piece := stream.read(PIECE):
                    yield piece
                if stream.left:
                    raise AwsError("IncompleteBody", f"The body ended {stream.left} bytes early.")
                return
            last = yield from self._chunks(stream)
            while line := stream.readline(LINE).strip():
                name, _, value = line.decode("latin-1").partition(":")
                trailers[name.strip().lower()] = value.strip()
            self.signature.check_trailers(trailers, last)
        except TimeoutError as error:
            raise AwsError("RequestTimeout", "The body did not come: nothing was sent.") from error

    def _chunks(self, stream: RequestBody) -> Generator[bytes, None, str]:
        """The content of AWS's own chunks. Returns the last one's signature, or ""."""
        before, size = "", 1
        while size:
            line = stream.readline(LINE)
            size, digest = chunk_size(line), hashlib.sha256()
            left = size
            while left and (piece := stream.read(min(left, PIECE))):
                digest.update(piece)
                yield piece
                left -= len(piece)
            if left or (size and stream.readline(LINE).strip()):
                raise AwsError("IncompleteBody", "A chunk is shorter than it says.")
            if self.signature.signs_chunks:
                before = self.signature.check_chunk(line, digest.hexdigest(), before)
        return before
