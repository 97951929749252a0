"""The worker's HTTP server, a thread for each connection on loopback; requests and answers.

Every address begins with the worker's key, http://127.0.0.1:PORT/KEY/invocations: other users of
the machine and web pages can reach the port, and do not know it.
"""

from __future__ import annotations

import dataclasses
import hmac
import logging
import traceback

from werkzeug import Request as HttpRequest
from werkzeug import Response
from werkzeug.exceptions import HTTPException
from werkzeug.serving import ThreadedWSGIServer

from local_sagemaker.protocol.connection_limits import LimitedServer

KEY = "LOCAL_SAGEMAKER_KEY"  # the variable that holds it
ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
JSON = "application/json"
CSV = "text/csv"


class CannotLoad(Exception):
    """Why a model cannot be served, and what is wanted."""


class Refused(HTTPException):
    """A request that is answered with an HTTP status other than 200, and a body."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(body, Response(body, status))
        self.status, self.body = status, body


@dataclasses.dataclass
class Request:
    """An invocation. body: its bytes. content_type, accept, attributes: headers, or None."""

    body: bytes
    content_type: str | None = None
    accept: str | None = None
    attributes: str | None = None


class _Server(LimitedServer, ThreadedWSGIServer):
    pass


def serve(descriptor: int, model, key: str) -> None:
    """Answer on a socket that listens already, who knows the key. Never returns.

    model: has `invoke(Request) -> Response`, which raises Refused; what else it raises becomes
    status 500.
    """
    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # a model's own words matter here

    @HttpRequest.application
    def answer(request: HttpRequest) -> Response:
        given, _, path = request.path[1:].partition("/")
        # Before anything else, such as reading the body.
        if not hmac.compare_digest(given.encode(), key.encode()):
            raise Refused(403, "A worker answers its endpoint only: InvokeEndpoint.")
        server.authenticated(request.environ["werkzeug.socket"])
        if (request.method, path) == ("GET", "ping"):
            return Response()
        if (request.method, path) != ("POST", "invocations"):
            raise Refused(404, f"There is nothing at /{path}.")
        if not request.headers.get("Content-Length", "").isdigit():
            raise Refused(411, "Content-Length is missing, or not a number.")
        header = request.headers.get
        types = header("Content-Type"), header("Accept"), header(ATTRIBUTES)
        try:
            return model.invoke(Request(request.get_data(), *types))
        except Refused:
            raise
        except Exception as error:
            print(traceback.format_exc(), flush=True)  # the endpoint's log has all of it
            return Response(str(error), 500)

    server = _Server("127.0.0.1", 0, answer, fd=descriptor)
    server.serve_forever()  # it is ended by ending the process
