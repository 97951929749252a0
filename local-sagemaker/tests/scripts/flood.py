"""Moves bytes between instances and prints how long that took. Standard library only.

    python flood.py BYTES HOST ...      all hosts, the one that conducts first

The first prints one line: SECONDS {"out": s, "in": s, "both": s, "from all": s, "to all": s,
"beside": s}. "beside" is the round trip of 8 bytes while a stream goes the same way (median).
"""

import json
import socket
import socketserver
import statistics
import struct
import sys
import time
from concurrent.futures import ThreadPoolExecutor

PORT = 5000
TRIES = 3  # the fastest counts: what else the machine does only makes one slower
HEAD = struct.Struct("<cq")  # what is wanted of the server, and how many bytes


def conduct(others: list[str], size: int) -> None:
    first = others[0]
    for host in others:
        ask(b"T", host, 8)  # wait until everybody is there
    seconds = {
        "out": fastest((b"T", first, size)),
        "in": fastest((b"G", first, size)),
        "both": fastest((b"T", first, size), (b"G", first, size)),
        "from all": together(*((b"G", host, size) for host in others)),
        "to all": together(*((b"T", host, size) for host in others)),
        "beside": beside(first, size),
    }
    print("SECONDS " + json.dumps(seconds), flush=True)
    for host in others:
        ask(b"Q", host, 0)


def together(*asks: tuple) -> float:
    """Seconds until all of these calls of `ask`, begun at once, are done."""
    with ThreadPoolExecutor(len(asks)) as pool:
        begin = time.perf_counter()
        list(pool.map(lambda words: ask(*words), asks))
        return time.perf_counter() - begin


def fastest(*asks: tuple) -> float:
    return min(together(*asks) for _ in range(TRIES))


def beside(host: str, size: int) -> float:
    """Median seconds of a small message's round trip while `size` bytes go to `host`."""
    times = []
    with ThreadPoolExecutor(1) as pool:
        stream = pool.submit(ask, b"T", host, size)
        while not (times and stream.done()):
            begin = time.perf_counter()
            ask(b"T", host, 8)
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def ask(action: bytes, host: str, size: int) -> None:
    """Take (T) `size` bytes from me, Give (G) me as many, or Quit (Q)."""
    with connect(host) as peer:
        peer.sendall(HEAD.pack(action, size))
        if action == b"G":
            read(peer, size)
        elif action == b"T":
            peer.sendall(bytes(size))
            read(peer, 1)  # all has arrived


def connect(host: str) -> socket.socket:
    deadline = time.monotonic() + 30
    while True:
        try:
            return socket.create_connection((host, PORT), timeout=60)
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Answer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        action, size = HEAD.unpack(read(self.request, HEAD.size))
        if action == b"G":
            self.request.sendall(bytes(size))
        elif action == b"T":
            read(self.request, size)
            self.request.sendall(b".")
        else:
            self.server.shutdown()


def read(peer: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = peer.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionError(f"the peer ended after {len(data)} of {size} bytes")
        data += piece
    return bytes(data)


if __name__ == "__main__":
    size, hosts = int(sys.argv[1]), sys.argv[2:]
    if socket.gethostname() == hosts[0]:
        conduct(hosts[1:], size)
    else:
        socketserver.ThreadingTCPServer(("", PORT), Answer).serve_forever()
