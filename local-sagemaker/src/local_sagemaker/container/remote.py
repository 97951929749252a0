"""Starting a process on another instance, where AWS's images use sshd.

A worker runs `Server` on port 22 of its own eth0. mpirun calls this file as its ssh:

    python -m local_sagemaker.container.remote HOST COMMAND ...

Only instances of the same job can reach that port: their network ends at its bridge. The
protocol is one JSON line in, then the command's output, a zero byte and its exit code.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable

PORT = 22
CONNECT_SECONDS = 5
START_SECONDS = 60  # until an instance serves
END = b"\0"


class Server:
    """Runs commands for the master until the master says that the job is done."""

    def __init__(self, host: str) -> None:
        self.done = threading.Event()
        self._listener = socket.create_server((host, PORT))
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, contextlib.suppress(OSError):
            request = json.loads(stream.readline() or "{}")
            if request.get("done"):
                self.done.set()
            if "command" in request:
                process = subprocess.Popen(
                    ["/bin/sh", "-c", request["command"]],
                    stdin=subprocess.DEVNULL,
                    stdout=connection.fileno(),
                    stderr=connection.fileno(),
                )
                connection.sendall(END + str(process.wait()).encode())


def request(host: str, **body: object) -> tuple[bytes, int]:
    """Send one request to `host`; the output and exit code of what ran there.

    Raises OSError if nobody answers.
    """
    with socket.create_connection((host, PORT), timeout=CONNECT_SECONDS) as connection:
        connection.settimeout(None)
        connection.sendall(json.dumps(body).encode() + b"\n")
        received = b""
        while data := connection.recv(65536):
            received += data
    output, _, code = received.rpartition(END)
    return output, int(code) if code else 0


def wait_for(host: str, log: Callable[[str], None]) -> None:
    """Wait until `host` serves. Raises OSError if it does not. log: told of each lost attempt."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            request(host, ping=True)
            return
        except OSError as error:
            if isinstance(error, TimeoutError):  # nobody refuses: the packets are dropped
                log(f"Cannot connect to host {host}")  # the toolkit's own words
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main() -> int:
    host, command = sys.argv[1], " ".join(sys.argv[2:])
    try:
        output, code = request(host, command=command)
    except OSError as error:
        print(f"cannot start a process on {host}: {error}", file=sys.stderr)
        return 255
    os.write(1, output)
    return code


if __name__ == "__main__":
    sys.exit(main())
