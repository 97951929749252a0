"""The server's own HTTP: threads, time limits, and answers to what is not HTTP at all."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from functools import partial
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from local_sagemaker.protocol.answers import http_error
from local_sagemaker.protocol.bodies import BAD_URI, RequestBody
from local_sagemaker.protocol.signatures import SIGNED
from local_sagemaker.protocol.strangers import Strangers
from local_sagemaker.server.web_pages import LOCAL_ADDRESS

IDLE_SECONDS = 60  # a client that sends nothing for so long is let go
MOST_FILES = 4096  # open at once: a client holds one, and a job a few
DRAINED = 64 * 1024 * 1024  # bytes of a body that nobody wants


class Server(Strangers, ThreadedWSGIServer):
    """A thread for each connection: a slow client keeps nobody waiting."""

    daemon_threads = True
    request_queue_size = 256


class Handler(MotoRequestHandler):
    """One connection, which stays open from request to request."""

    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True  # else the last packet of an answer waits for a client's ACK
    wbufsize = 64 * 1024  # headers and a short body leave in one packet

    def handle_expect_100(self) -> bool:
        found = super().handle_expect_100()
        self.wfile.flush()  # the client waits for it
        return found

    def run_wsgi(self) -> None:
        """Answer a request.

        werkzeug's own closes every connection, and before that waits 10 ms for more of the body.
        Here one stays open where the body was read to its end and the answer says its length.
        """
        self.environ = environ = self.make_environ()
        told: list[tuple[str, list[tuple[str, str]]]] = []
        try:
            answer = self.server.app(
                environ, lambda status, headers, _=None: told.append((status, headers))
            )
            try:
                self._send(*told[-1], answer)
            finally:
                if hasattr(answer, "close"):
                    answer.close()
        except OSError:  # whoever asked is gone
            self.close_connection = True

    def _send(self, status: str, headers: list[tuple[str, str]], answer: Iterable[bytes]) -> None:
        code, _, words = status.partition(" ")
        known = {name.lower() for name, _ in headers}
        bodyless = self.command == "HEAD" or code in ("204", "304")
        if isinstance(answer, list) and "content-length" not in known:
            headers = [*headers, ("Content-Length", str(sum(map(len, answer))))]
        elif "content-length" not in known and not bodyless:
            self.close_connection = True  # the end of the connection ends the answer
        unsigned = self.connection in self.server.strangers
        if unsigned or self.body.chunked or self.body.left:
            self.close_connection = True
        self.send_response(int(code), words)
        for name, value in headers:
            if not (code == "204" and name.lower() == "content-length"):
                self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        for piece in () if bodyless else answer:
            self.wfile.write(piece)
        self.wfile.flush()
        self._drain()

    def _drain(self) -> None:
        """Read what is left of a refused body, up to a bound: else the client sees a reset
        connection in place of the answer."""
        left = min(self.body.left, DRAINED)
        while left and (piece := self.body.read(min(left, 65536))):
            left -= len(piece)

    def log_request(self, *args, **kwargs) -> None:
        """Requests are not logged: the jobs' own logs are what people look for."""

    def make_environ(self) -> dict[str, Any]:
        """werkzeug's. An address that is none becomes an entry, and the application refuses it."""
        self.server.complete(self.connection)
        try:
            environ, why = super().make_environ(), None
        except ValueError as error:  # "http://[" for example
            self.path, why = "/", str(error)
            environ = super().make_environ()
        if why:
            environ[BAD_URI] = why
        chunked = bool(environ.get("wsgi.input_terminated"))
        self.body = RequestBody(self.rfile, environ.get("CONTENT_LENGTH") or "0", chunked)
        environ["wsgi.input"] = self.body
        environ[SIGNED] = partial(self.server.know, self.connection)
        host, port = self.connection.getsockname()[:2]
        environ[LOCAL_ADDRESS] = host
        environ.setdefault("HTTP_HOST", f"{host}:{port}")  # moto looks at it, HTTP/1.0 lacks it
        return environ

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server says to bad HTTP, in S3's form in place of a page."""
        self.close_connection = True
        self.wfile.write(http_error(code, message or self.responses.get(code, ("Error",))[0]))
        self.wfile.flush()


def room_for_clients() -> None:
    """Allow as many open files as this user may have, up to MOST_FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
