"""Answers in the forms that AWS's protocols have: JSON, and XML for S3, IAM, EC2 and others."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from xml.sax.saxutils import escape

from local_sagemaker.protocol.errors import AwsError

JSON_TYPE = "application/x-amz-json-1.1"


def answer(start_response: Callable, body: dict) -> list[bytes]:
    """200 with a JSON body."""
    return send(start_response, "200 OK", JSON_TYPE, json.dumps(body).encode())


def refuse(start_response: Callable, error: AwsError, environ: dict, service: str) -> list[bytes]:
    """An error, in the protocol that the request was made in."""
    status = f"{error.status} {error.code}"
    spoken = protocol(environ, service)
    if spoken == "json":
        body = json.dumps({"__type": error.code, "message": error.message}).encode()
        return send(start_response, status, JSON_TYPE, body, error.code)
    told = f"<Code>{escape(error.code)}</Code><Message>{escape(error.message)}</Message>"
    inner = f"<Error>{told}</Error>"
    if spoken == "ec2":
        inner = f"<Response><Errors>{inner}</Errors></Response>"
    elif spoken == "query":
        inner = f"<ErrorResponse>{inner}</ErrorResponse>"
    raw = f'<?xml version="1.0" encoding="UTF-8"?>{inner}'.encode()
    return send(start_response, status, "application/xml", raw)


def as_aws_shapes_it(status: str, body: list[bytes], environ: dict) -> None:
    """Raise AwsError where moto refused with a page, plain words or nothing, as no service does."""
    told = b"".join(body).strip()
    if status[0] not in "45" or environ["REQUEST_METHOD"] == "HEAD":
        return
    if told.startswith(b"{") or b"<Code>" in told:
        return
    code, _, words = status.partition(" ")
    name = "".join(part.capitalize() for part in words.split()) or "InvalidRequest"
    name = "AccessDenied" if name == "Forbidden" else name
    what = f"{environ['REQUEST_METHOD'][:40]} {environ['PATH_INFO'][:200]}"
    plain = "" if b"<" in told else told[:500].decode("utf-8", "replace")
    message = plain or f"{words}: {what} is no request of this service."
    raise AwsError(name, message, int(code))


def http_error(code: int, words: str) -> bytes:
    """The whole answer to what is not HTTP: status line, headers, an error in S3's form."""
    name = "".join(part.capitalize() for part in words.split()) or "BadRequest"
    told = f"<Code>{escape(name)}</Code><Message>{escape(words)}</Message>"
    raw = f'<?xml version="1.0" encoding="UTF-8"?><Error>{told}</Error>'.encode()
    head = f"HTTP/1.1 {code} {name}\r\nContent-Type: application/xml\r\n"
    return f"{head}Content-Length: {len(raw)}\r\nConnection: close\r\n\r\n".encode() + raw


def protocol(environ: dict, service: str) -> str:
    """The protocol of a request: json, s3, ec2 or query (that of all others with XML)."""
    kind = environ.get("CONTENT_TYPE", "")
    if "HTTP_X_AMZ_TARGET" in environ or "json" in kind or "cbor" in kind:
        return "json"
    if service in ("s3", "ec2"):
        return service
    form = kind.startswith("application/x-www-form-urlencoded")
    return "query" if form or service in ("cloudfront", "route53") else "json"


def send(
    start_response: Callable, status: str, kind: str, raw: bytes, code: str = ""
) -> list[bytes]:
    """An answer. code: of an error, or ""."""
    headers = [
        ("Content-Type", kind),
        ("Content-Length", str(len(raw))),
        ("x-amzn-RequestId", str(uuid.uuid4())),
    ]
    if code:
        headers.append(("x-amzn-ErrorType", code))
    start_response(status, headers)
    return [raw]
