"""A web server that misbehaves on request, and small files in the real formats."""

import gzip
import hashlib
import io
import struct
import tarfile
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

Answer = Callable[[BaseHTTPRequestHandler, threading.Event], None]


class Server:
    """Serves `answers[path]`: a list of answers, used in order; the last one stays."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.closing = threading.Event()
        self.started = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append((self.path, dict(self.headers)))
                queue = outer.answers.get(self.path, [status(404)])
                answer = queue.pop(0) if len(queue) > 1 else queue[0]
                outer.started.set()
                answer(self, outer.closing)

            def log_message(self, *_: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,))
        self._thread.start()

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def tree(folder: Path) -> list[str]:
    """Everything below a directory, hidden and temporary files too."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def status(code: int) -> Answer:
    def answer(handler: BaseHTTPRequestHandler, _: threading.Event) -> None:
        handler.send_response(code)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def serve(data: bytes, *, length: int | None = None, hang: bool = False) -> Answer:
    """Send `data` and announce `length` bytes; if that is more, hang up, or fall silent."""

    def answer(handler: BaseHTTPRequestHandler, closing: threading.Event) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(length or len(data)))
        handler.end_headers()
        handler.wfile.write(data)
        handler.wfile.flush()
        if hang:
            closing.wait(30)
        handler.close_connection = True

    return answer


def idx(array: np.ndarray) -> bytes:
    """An unpacked IDX file of unsigned bytes."""
    header = struct.pack(f">{1 + array.ndim}I", 0x800 | array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def mnist_arrays() -> dict[str, np.ndarray]:
    """40 training and 12 test digits, enlarged from 8 x 8 to 28 x 28 pixels."""
    from sklearn.datasets import load_digits  # slow: not for all who collect tests

    digits = load_digits()
    small = (digits.images[:52] * 15).astype(np.uint8)
    large = np.pad(np.kron(small, np.ones((1, 3, 3), np.uint8)), ((0, 0), (2, 2), (2, 2)))
    labels = digits.target[:52]
    return {
        "train-images-idx3-ubyte.gz": large[:40],
        "train-labels-idx1-ubyte.gz": labels[:40],
        "t10k-images-idx3-ubyte.gz": large[40:],
        "t10k-labels-idx1-ubyte.gz": labels[40:],
    }


def mnist_files() -> dict[str, bytes]:
    return {name: gzip.compress(idx(a), mtime=0) for name, a in mnist_arrays().items()}


def sums(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def cifar_record(image: np.ndarray, label: int) -> bytes:
    """One CIFAR-10 record, plane by plane, pixel by pixel: no reshape, no transpose."""
    planes = bytes(
        int(image[row, column, colour])
        for colour in range(3)
        for row in range(32)
        for column in range(32)
    )
    return bytes([label]) + planes


def cifar_pictures(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`count` different pictures: red top half, blue left column, one own green pixel."""
    images = np.zeros((count, 32, 32, 3), np.uint8)
    images[:, :16, :, 0] = 255
    images[:, :, 0, 2] = 200
    for number in range(count):
        images[number, 20 + number % 10, 5 + number // 10, 1] = 1 + seed + number
    return images, np.arange(count) % 10


def cifar_files(per_file: int = 20) -> dict[str, bytes]:
    names = [f"data_batch_{n}.bin" for n in range(1, 6)] + ["test_batch.bin"]
    files = {}
    for place, name in enumerate(names):
        images, labels = cifar_pictures(per_file, seed=place * per_file)
        files[name] = b"".join(map(cifar_record, images, labels.tolist()))
    return files


def tar_gz(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
