"""The worker's HTTP server: a thread for each connection, on loopback."""

from __future__ import annotations

import socket
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from local_sagemaker.serving.runtime.messages import ATTRIBUTES, Refused, Reply, Request

TEXT = "text/plain; charset=utf-8"


def serve(listener: socket.socket, model) -> None:
    """Answer on a socket that listens already. Never returns.

    model: has `invoke(Request) -> Reply`, and may have `rest(method, path, Request) -> Reply`
    for other paths. Both raise Refused; what else they raise becomes status 500.
    """
    server = _Server(("127.0.0.1", 0), _Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    server.server_address = listener.getsockname()
    server.model = model
    model.port = server.server_address[1]
    server.serve_forever(poll_interval=3600)  # it is ended by ending the process


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 64 * 1024  # headers and a short body leave in one packet

    def do_GET(self) -> None:
        if self.path == "/ping":
            self._send(Reply(b"", TEXT))
        else:
            self._answer(lambda: self._rest("GET"))

    def do_POST(self) -> None:
        if self.path == "/invocations":
            self._answer(lambda: self.server.model.invoke(self._request()))
        else:
            self._answer(lambda: self._rest("POST"))

    def _rest(self, method: str) -> Reply:
        rest = getattr(self.server.model, "rest", None)
        if rest is None:
            raise Refused(404, f"There is nothing at {self.path}.")
        return rest(method, self.path, self._request())

    def _request(self) -> Request:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        get = self.headers.get
        return Request(body, get("Content-Type"), get("Accept"), get(ATTRIBUTES))

    def _answer(self, make) -> None:
        try:
            reply = make()
        except Refused as refused:
            reply = Reply(refused.body.encode(), TEXT, refused.status)
        except Exception as error:
            print(traceback.format_exc(), flush=True)  # the endpoint's log has all of it
            reply = Reply(str(error).encode(), TEXT, 500)
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *args) -> None:
        """Requests are not logged: a model's own words are what people look for."""
