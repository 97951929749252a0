"""The emulator's HTTP server: threads, time limits, and responses to what is not HTTP at all.

Why not a WSGI server from the shelf: waitress stores a body of any size before it asks the
application whether the client may send one; cheroot has a fixed number of threads, and a client
that sends half a head keeps one busy. Both are open to every user of the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from moto.core.request import Request
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer
from werkzeug.wrappers import Response

from local_sagemaker.protocol.bodies import RequestBody
from local_sagemaker.protocol.connection_limits import LimitedServer
from local_sagemaker.protocol.responses import PROLOG
from local_sagemaker.protocol.signatures import AUTHENTICATED

IDLE_SECONDS = 60  # a client that sends nothing for so long is disconnected
MAX_DRAINED = 64 * 1024 * 1024  # bytes of a refused body that are read and thrown away


class Server(LimitedServer, ThreadedWSGIServer):
    """A thread for each connection: a slow client keeps nobody waiting."""

    request_queue_size = 256
    respond: Callable[[Request], Response]  # set before it serves


class RequestHandler(MotoRequestHandler):
    """One connection, which stays open from request to request."""

    server: Server
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True  # else the last packet of a response waits for a client's ACK
    wbufsize = 64 * 1024  # headers and a short body leave in one packet
    # What http.server says about bad HTTP, in S3's form in place of a page:
    default_request_version = "HTTP/1.0"  # of 0.9 are responses without a head
    error_content_type = "application/xml"
    error_message_format = (
        f"{PROLOG}<Error><Code>BadRequest</Code><Message>%(message)s</Message></Error>"
    )

    def handle_expect_100(self) -> bool:
        proceed = super().handle_expect_100()
        self.wfile.flush()  # the client waits for it
        return proceed

    def run_wsgi(self) -> None:
        """Answer a request.

        werkzeug's own closes every connection, and before that waits 10 ms for more of the body.
        Here one stays open where the body was read to its end and the response says its length.
        """
        try:
            self.environ = self.make_environ()
        except ValueError:  # "http://[" for example
            return self.send_error(400, "Invalid URI")
        try:
            # Not populated: the environ would refer to the request, and both keep the socket open.
            response = self.server.respond(Request(self.environ, populate_request=False))
            try:
                self._send(response)
            finally:
                response.close()
        except OSError:  # the client has disconnected
            self.close_connection = True

    def _send(self, response: Response) -> None:
        headers = response.get_wsgi_headers(self.environ)
        bodyless = self.command == "HEAD" or response.status_code in (204, 304)
        unauthenticated = self.connection in self.server.unauthenticated
        # Without a length the end of the connection ends the response.
        unknown_length = "Content-Length" not in headers and not bodyless
        if unauthenticated or unknown_length or self.body.chunked or self.body.left:
            self.close_connection = True
        self.send_response(response.status_code, response.status.partition(" ")[2])
        for name, value in headers.to_wsgi_list():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        for piece in response.get_app_iter(self.environ):
            self.wfile.write(piece)
        self.wfile.flush()
        self._drain()

    def _drain(self) -> None:
        """Read what is left of a refused body, up to a limit: otherwise the client sees a reset
        connection in place of the response."""
        left = min(self.body.left, MAX_DRAINED)
        while left and (piece := self.body.read(min(left, 65536))):
            left -= len(piece)

    def log_request(self, *args, **kwargs) -> None:
        """Requests are not logged: the jobs' own logs are what people look for."""

    def make_environ(self) -> dict[str, Any]:
        """werkzeug's, and what else the emulator needs. Raises ValueError for a malformed URL."""
        self.server.head_complete(self.connection)
        environ = super().make_environ()
        chunked = bool(environ.get("wsgi.input_terminated"))
        self.body = RequestBody(self.rfile, environ.get("CONTENT_LENGTH") or "0", chunked)
        environ["wsgi.input"] = self.body
        environ[AUTHENTICATED] = partial(self.server.authenticated, self.connection)
        host, port = self.connection.getsockname()[:2]
        environ.setdefault("HTTP_HOST", f"{host}:{port}")  # moto reads it, HTTP/1.0 lacks it
        return environ
