"""Responses in the forms of AWS's protocols: JSON, and XML for S3, IAM, EC2 and others."""

from __future__ import annotations

import json
import uuid
from xml.sax.saxutils import escape

from werkzeug.wrappers import Request
from werkzeug.wrappers import Response as WerkzeugResponse

from local_sagemaker.protocol.errors import AwsError

JSON_TYPE = "application/x-amz-json-1.1"
PROLOG = '<?xml version="1.0" encoding="UTF-8"?>'


class Response(WerkzeugResponse):
    default_mimetype = None


def json_response(body: dict) -> Response:
    return respond("200 OK", JSON_TYPE, json.dumps(body).encode())


def error_response(error: AwsError, request: Request, service: str) -> Response:
    """An error, in the protocol that the request was made in."""
    spoken = protocol(request, service)
    code = error.codes.get(spoken, error.code)
    status = f"{error.status} {code}"
    if spoken == "json":
        body = json.dumps({"__type": code, "message": error.message}).encode()
        return respond(status, JSON_TYPE, body, code)
    xml = f"<Error><Code>{escape(code)}</Code><Message>{escape(error.message)}</Message></Error>"
    if spoken == "ec2":
        xml = f"<Response><Errors>{xml}</Errors></Response>"
    elif spoken == "query":
        xml = f"<ErrorResponse>{xml}</ErrorResponse>"
    return respond(status, "application/xml", f"{PROLOG}{xml}".encode())


def check_error_format(response: Response, request: Request) -> None:
    """Raise AwsError where moto refused with an HTML page, plain text or an empty body."""
    body = response.get_data().strip()
    if response.status_code < 400 or request.method == "HEAD":
        return
    if body.startswith(b"{") or b"<Code>" in body:
        return
    words = response.status.partition(" ")[2]
    code = "AccessDenied" if words.lower() == "forbidden" else words.title().replace(" ", "")
    plain = "" if b"<" in body else body[:500].decode("utf-8", "replace")
    target = f"{request.method[:40]} {request.path[:200]}"
    message = plain or f"The emulator does not offer this: {target} ({words})"
    raise AwsError(code or "InvalidRequest", message, response.status_code)


def protocol(request: Request, service: str) -> str:
    """The protocol of a request: json, s3, ec2 or query (that of all others with XML)."""
    content_type = request.content_type or ""
    if "X-Amz-Target" in request.headers or "json" in content_type or "cbor" in content_type:
        return "json"
    if service in ("s3", "ec2"):
        return service
    form = content_type.startswith("application/x-www-form-urlencoded")
    return "query" if form or service in ("cloudfront", "route53") else "json"


def respond(status: str, content_type: str, body: bytes, error_code: str = "") -> Response:
    """status: with its words, such as "200 OK"."""
    headers = {"Content-Type": content_type, "x-amzn-RequestId": str(uuid.uuid4())}
    if error_code:
        headers["x-amzn-ErrorType"] = error_code
    return Response(body, status, headers)
