"""An object's bytes on their way in: unwrapped, bounded, and compared with what was promised."""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Generator, Iterator, Mapping

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


# Those which Python computes. Others (CRC32C, CRC64NVME) are kept as the client says them.
ALGORITHMS = {"CRC32": Crc32, "SHA1": hashlib.sha1, "SHA256": hashlib.sha256}
CHECKSUMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")


class Body:
    """The body of a request that stores bytes. Iterate it once: pieces of its content.

    limit: bytes of content. Afterwards `etag` and `checksums` (base64 by S3's member name,
    for example {"ChecksumCRC32": "..."}) are known.

    Raises AwsError: what arrives is not what the client announced, or too much.
    """

    def __init__(self, environ: dict, limit: int, signature: Signature) -> None:
        self.environ, self.limit, self.signature = environ, limit, signature
        self.headers = {
            name[5:].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        self.md5 = hashlib.md5(usedforsecurity=False)
        self.checksums: dict[str, str] = {}

    @property
    def etag(self) -> str:
        return self.md5.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        promised = self.headers.get("x-amz-content-sha256", "")
        whole = hashlib.sha256() if SIGNED.fullmatch(promised) else None
        said = {name: self._said(self.headers, name) for name in CHECKSUMS}
        trailing = self.headers.get("x-amz-trailer", "").lower()
        digests = {
            name: ALGORITHMS[name]()
            for name, value in said.items()
            if (value or trailing == _header(name)) and name in ALGORITHMS
        }
        trailers: dict[str, str] = {}
        length = 0
        for piece in self._pieces(promised, trailers):
            length += len(piece)
            if length > self.limit:
                raise AwsError("EntityTooLarge", f"An object has at most {self.limit} bytes.")
            self.md5.update(piece)
            if whole:
                whole.update(piece)
            for one in digests.values():
                one.update(piece)
            yield piece
        if whole and whole.hexdigest() != promised:
            raise AwsError(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
        expected = self.headers.get("content-md5")
        if expected and expected != _base64(self.md5.digest()):
            raise AwsError(
                "BadDigest", "The Content-MD5 you specified did not match what we received."
            )
        self._compare({name: said[name] or self._said(trailers, name) for name in said}, digests)

    @staticmethod
    def _said(headers: Mapping[str, str], name: str) -> str:
        return headers.get(_header(name), "")

    def _compare(self, said: dict[str, str], digests: dict) -> None:
        for name, value in said.items():
            if not value:
                continue
            if name in digests and _base64(digests[name].digest()) != value:
                raise AwsError(
                    "BadDigest",
                    f"The {name} you specified did not match the calculated checksum.",
                )
            self.checksums[f"Checksum{name}"] = value

    def _pieces(self, promised: str, trailers: dict[str, str]) -> Iterator[bytes]:
        stream: RequestBody = self.environ["wsgi.input"]
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


def _header(name: str) -> str:
    return f"x-amz-checksum-{name.lower()}"


def _base64(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
