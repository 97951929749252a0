"""The worker's HTTP server, a thread for each connection on loopback; requests and answers.

Every address begins with the worker's key, http://127.0.0.1:PORT/KEY/invocations: other users of
the machine and web pages can reach the port, and do not know it.
"""

from __future__ import annotations

import dataclasses
import hmac
import socket
import traceback
from http.server import BaseHTTPRequestHandler, HTTPServer

from local_sagemaker.protocol.connection_limits import LimitedServer

KEY = "LOCAL_SAGEMAKER_KEY"  # the variable that holds it
ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
JSON = "application/json"
CSV = "text/csv"
TEXT = "text/plain; charset=utf-8"


class CannotLoad(Exception):
    """Why a model cannot be served, and what is wanted."""


class Refused(Exception):
    """A request that is answered with an HTTP status other than 200, and a body."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body)
        self.status, self.body = status, body


@dataclasses.dataclass
class Request:
    """An invocation. body: its bytes. content_type, accept, attributes: headers, or None."""

    body: bytes
    content_type: str | None = None
    accept: str | None = None
    attributes: str | None = None


@dataclasses.dataclass
class Reply:
    """The answer to an invocation."""

    body: bytes
    content_type: str
    status: int = 200


def serve(listener: socket.socket, model, key: str) -> None:
    """Answer on a socket that listens already, who knows the key. Never returns.

    model: has `invoke(Request) -> Reply`, and may have `rest(path, Request) -> Reply` for what is
    posted elsewhere. Both raise Refused; what else they raise becomes status 500.
    """
    server = _Server(listener, model, key)
    model.address = f"http://localhost:{server.server_address[1]}/{key}"
    server.serve_forever(poll_interval=3600)  # it is ended by ending the process


class _Server(LimitedServer, HTTPServer):
    def __init__(self, listener: socket.socket, model, key: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler, bind_and_activate=False)
        self.socket.close()
        self.socket, self.server_address = listener, listener.getsockname()
        self.model, self.key = model, key


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # headers and a short body leave in one packet

    def parse_request(self) -> bool:
        """Refuse who does not know the key before anything else, such as reading the body."""
        if not super().parse_request():
            return False
        key, _, path = self.path[1:].partition("/")
        if not hmac.compare_digest(key.encode(), self.server.key.encode()):
            self.close_connection = True
            self._send(Reply(b"A worker answers its endpoint only: InvokeEndpoint.", TEXT, 403))
            return False
        self.server.authenticated(self.connection)
        self.path = f"/{path}"
        return True

    def do_GET(self) -> None:
        if self.path == "/ping":
            self._send(Reply(b"", TEXT))
        else:
            self._send(Reply(b"There is nothing here.", TEXT, 404))

    def do_POST(self) -> None:
        try:
            reply = self._reply()
        except Refused as refused:
            reply = Reply(refused.body.encode(), TEXT, refused.status)
        except Exception as error:
            print(traceback.format_exc(), flush=True)  # the endpoint's log has all of it
            reply = Reply(str(error).encode(), TEXT, 500)
        self._send(reply)

    def _reply(self) -> Reply:
        model = self.server.model
        if self.path == "/invocations":
            return model.invoke(self._request())
        if hasattr(model, "rest"):
            return model.rest(self.path, self._request())
        raise Refused(404, f"There is nothing at {self.path}.")

    def _request(self) -> Request:
        get = self.headers.get
        length = get("Content-Length") or "0"
        if not (length.isascii() and length.isdigit() and len(length) < 19):
            self.close_connection = True  # where the next request begins cannot be known
            raise Refused(400, f"Content-Length is not a number: {length[:40]}")
        body = self.rfile.read(int(length))
        return Request(body, get("Content-Type"), get("Accept"), get(ATTRIBUTES))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *args) -> None:
        """Requests are not logged: a model's own words are what people look for."""
