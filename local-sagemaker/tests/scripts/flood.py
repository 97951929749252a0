"""Moves bytes between instances and prints how long that took. Standard library only.

    python flood.py BYTES HOST ...      all hosts, the one that conducts first

The first prints one line: SECONDS {"out": s, "in": s, "both": s, "from all": s, "to all": s,
"beside": s}. "beside" is the round trip of 8 bytes while a stream goes the same way (median).
"""

import json
import socket
import statistics
import struct
import sys
import threading
import time

PORT = 5000
TRIES = 3  # the fastest counts: what else the machine does only makes one slower
HEAD = struct.Struct("<cq")  # what is wanted of the server, and how many bytes


def main() -> None:
    size, hosts = int(sys.argv[1]), sys.argv[2:]
    server = threading.Thread(target=serve)
    server.start()
    if socket.gethostname() == hosts[0]:
        conduct(hosts[1:], size)
    server.join()


def conduct(others: list[str], size: int) -> None:
    first = others[0]
    for host in others:
        ask(b"T", host, 8)  # wait until everybody is there
    seconds = {
        "out": fastest([lambda: ask(b"T", first, size)]),
        "in": fastest([lambda: ask(b"G", first, size)]),
        "both": fastest([lambda: ask(b"T", first, size), lambda: ask(b"G", first, size)]),
        "from all": together([lambda host=host: ask(b"G", host, size) for host in others]),
        "to all": together([lambda host=host: ask(b"T", host, size) for host in others]),
        "beside": beside(first, size),
    }
    print("SECONDS " + json.dumps(seconds), flush=True)
    for host in [*others, "localhost"]:
        ask(b"Q", host, 0)


def together(works: list) -> float:
    """Seconds until all of `works`, begun at once, are done."""
    threads = [threading.Thread(target=work) for work in works]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - begin


def fastest(works: list) -> float:
    return min(together(works) for _ in range(TRIES))


def beside(host: str, size: int) -> float:
    """Median seconds of a small message's round trip while `size` bytes go to `host`."""
    stream = threading.Thread(target=ask, args=(b"T", host, size))
    stream.start()
    times = []
    while stream.is_alive() or not times:
        begin = time.perf_counter()
        ask(b"T", host, 8)
        times.append(time.perf_counter() - begin)
    stream.join()
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


def serve() -> None:
    with socket.create_server(("0.0.0.0", PORT)) as listener:
        while True:
            peer, _ = listener.accept()
            action, size = HEAD.unpack(read(peer, HEAD.size))
            if action == b"Q":
                return
            threading.Thread(target=answer, args=(peer, action, size)).start()


def answer(peer: socket.socket, action: bytes, size: int) -> None:
    with peer:
        if action == b"G":
            peer.sendall(bytes(size))
        else:
            read(peer, size)
            peer.sendall(b".")


def read(peer: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view, got = memoryview(data), 0
    while got < size:
        count = peer.recv_into(view[got:])
        if not count:
            raise ConnectionError(f"the peer ended after {got} of {size} bytes")
        got += count
    return bytes(data)


if __name__ == "__main__":
    main()
