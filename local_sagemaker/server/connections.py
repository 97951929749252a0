"""The server's own HTTP: threads, time limits, and answers to what is not HTTP at all."""

from __future__ import annotations

import resource
from typing import Any

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import ThreadedWSGIServer

from local_sagemaker.server.answers import http_error
from local_sagemaker.server.bodies import BAD_URI, IN_CHUNKS
from local_sagemaker.server.web_pages import LOCAL_ADDRESS

IDLE_SECONDS = 60  # a client that sends nothing for so long is let go
MOST_FILES = 4096  # open at once: a client holds one, and a job a few


class Server(ThreadedWSGIServer):
    """A thread for each connection: a slow client keeps nobody waiting."""

    daemon_threads = True
    request_queue_size = 256


class Handler(MotoRequestHandler):
    """One connection."""

    timeout = IDLE_SECONDS

    def log_request(self, *args, **kwargs) -> None:
        """Requests are not logged: the jobs' own logs are what people look for."""

    def make_environ(self) -> dict[str, Any]:
        """werkzeug's. An address that is none becomes an entry, and the application refuses it."""
        try:
            environ, why = super().make_environ(), None
        except ValueError as error:  # "http://[" for example
            self.path, why = "/", str(error)
            environ = super().make_environ()
        if why:
            environ[BAD_URI] = why
        if environ.get("wsgi.input_terminated"):
            environ[IN_CHUNKS] = self.rfile
        host, port = self.connection.getsockname()[:2]
        environ[LOCAL_ADDRESS] = host
        environ.setdefault("HTTP_HOST", f"{host}:{port}")  # moto looks at it, HTTP/1.0 lacks it
        return environ

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What http.server says to bad HTTP, in S3's form in place of a page."""
        self.close_connection = True
        self.wfile.write(http_error(code, message or self.responses.get(code, ("Error",))[0]))


def room_for_clients() -> None:
    """Allow as many open files as this user may have, up to MOST_FILES."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
