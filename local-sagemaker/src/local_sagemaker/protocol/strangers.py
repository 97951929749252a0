"""Connections of whoever has not shown a key: few, and only for a while.

Every user of the machine can connect to a port on loopback. What is here keeps them from taking
all of a server's open files. Standard library only: a model's worker uses it, too.
"""

from __future__ import annotations

import contextlib
import math
import socket
import time

HEAD_SECONDS = 10.0  # for the whole head of a connection's first request
MOST = 256  # connections at once that have not shown a key


class Strangers:
    """Mixed into a socketserver with a thread for each connection.

    A connection is a stranger until `know`. Of more than MOST the oldest is closed; so is one
    whose head is not `complete` after HEAD_SECONDS.
    """

    def __init__(self, *args, **kwargs) -> None:
        self.strangers: dict[socket.socket, float] = {}  # -> when it is closed; the oldest first
        super().__init__(*args, **kwargs)

    def know(self, connection: socket.socket) -> None:
        """The connection's client has shown the key."""
        self.strangers.pop(connection, None)

    def complete(self, connection: socket.socket) -> None:
        """The head of a request is here."""
        if connection in self.strangers:
            self.strangers[connection] = math.inf

    def process_request(self, request: socket.socket, client_address) -> None:
        self.strangers[request] = time.monotonic() + HEAD_SECONDS
        for oldest in list(self.strangers)[:-MOST]:
            self._close(oldest)
        super().process_request(request, client_address)

    def finish_request(self, request: socket.socket, client_address) -> None:
        with contextlib.suppress(OSError):  # an answer to who is gone: what was open is closed
            super().finish_request(request, client_address)

    def service_actions(self) -> None:
        now = time.monotonic()
        for one, until in list(self.strangers.items()):
            if until < now:
                self._close(one)
        super().service_actions()

    def shutdown_request(self, request: socket.socket) -> None:
        self.know(request)
        super().shutdown_request(request)

    def _close(self, connection: socket.socket) -> None:
        """Its thread sees an end, and closes it."""
        self.know(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
