"""HTTP as no AWS client would send it."""

from __future__ import annotations

import http.client
import json
import socket

SIGNED = "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/{}/aws4_request, Signature=0"


def call(endpoint, target: str, body: object = b"", service: str = "sagemaker", **headers):
    """POST to the endpoint; (status, content type, answer's text)."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.running.port, timeout=60)
    sent = {"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"}
    sent |= {"Authorization": SIGNED.format(service)} if service else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("POST", "/", raw, sent)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


def error(endpoint, target: str, body: object = b"", service: str = "sagemaker", **headers):
    """The same for a refusal in JSON: (status, code, message)."""
    status, kind, text = call(endpoint, target, body, service, **headers)
    assert kind == "application/x-amz-json-1.1", text
    told = json.loads(text)
    return status, told["__type"], told["message"]


def raw(endpoint, head: str, body: bytes = b"", end: bool = False) -> str:
    """Send these very bytes; what comes back within 60 s. end: then close our side."""
    with socket.create_connection(("127.0.0.1", endpoint.running.port), timeout=60) as connection:
        connection.sendall(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        if end:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while data := connection.recv(65536):
            received += data
    return received.decode()
