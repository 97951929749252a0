"""The emulator as its own client, without HTTP: jobs write their log lines by it.

As LocalStack's GatewayShortCircuit, a handler of botocore's `before-send` event gives the response
in place of the network; the rest of botocore, its retries and errors included, stays as it is.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from moto.core.request import Request
from werkzeug.wrappers import Response

from local_sagemaker.protocol.bodies import RequestBody
from local_sagemaker.protocol.signatures import AUTHENTICATED


class InProcess:
    """Sends the requests of botocore's clients to a function in this process."""

    def __init__(self, emulator: Callable[[Request], Response]) -> None:
        self.emulator = emulator

    def connect(self, client: Any) -> None:
        """From now on the client's requests take this way. Their bodies must be short."""
        client.meta.events.register("before-send", self._send)

    def _send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body = request.body or b""
        body = body.encode() if isinstance(body, str) else body
        received = Request.from_primitives(request.method, request.url, request.headers, body)
        received.environ |= {
            "RAW_URI": request.url,
            "wsgi.input": RequestBody(io.BytesIO(body), str(len(body)), chunked=False),
            AUTHENTICATED: lambda: None,
        }
        response = self.emulator(received)
        raw = io.BytesIO(response.get_data())
        raw.stream = lambda **_: iter([raw.read()])  # type: ignore[attr-defined]
        return AWSResponse(request.url, response.status_code, response.headers, raw)
