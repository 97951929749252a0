"""Limits for connections whose client has not shown a key: few of them, and only for a while.

Every user of the machine can connect to a port on loopback. These limits keep such connections
from taking all of a server's open files. Standard library only: a model's worker uses it, too.
"""

from __future__ import annotations

import contextlib
import math
import socket
import socketserver
import time

HEAD_SECONDS = 10.0  # for the whole head of a connection's first request
MAX_CONNECTIONS = 256  # at once, whose client has not shown a key


class LimitedServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """A socket server with a thread for each connection, which closes those that cost too much.

    A connection is unauthenticated until `authenticated`. Of more than MAX_CONNECTIONS the oldest
    is closed, and so is one whose `head_complete` was not called after HEAD_SECONDS.
    """

    daemon_threads = True

    def __init__(self, *args, **kwargs) -> None:
        # -> when it is closed; the oldest first
        self.unauthenticated: dict[socket.socket, float] = {}
        super().__init__(*args, **kwargs)

    def authenticated(self, connection: socket.socket) -> None:
        """The connection's client has shown the key."""
        self.unauthenticated.pop(connection, None)

    def head_complete(self, connection: socket.socket) -> None:
        """The head of a request was read."""
        if connection in self.unauthenticated:
            self.unauthenticated[connection] = math.inf

    def process_request(self, request, client_address) -> None:
        self.unauthenticated[request] = time.monotonic() + HEAD_SECONDS
        for oldest in list(self.unauthenticated)[:-MAX_CONNECTIONS]:
            self._close(oldest)
        super().process_request(request, client_address)

    def finish_request(self, request, client_address) -> None:
        with contextlib.suppress(OSError):  # the client has disconnected
            super().finish_request(request, client_address)

    def service_actions(self) -> None:
        now = time.monotonic()
        for connection, deadline in list(self.unauthenticated.items()):
            if deadline < now:
                self._close(connection)
        super().service_actions()

    def shutdown_request(self, request) -> None:
        self.authenticated(request)
        super().shutdown_request(request)

    def _close(self, connection: socket.socket) -> None:
        """Its thread reads an end of file, and closes it."""
        self.authenticated(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
