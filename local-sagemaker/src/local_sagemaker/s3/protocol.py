"""S3's HTTP: from a request to a call on objects, and from its result to a response.

Which call a request is, its members and its result's XML follow botocore's model of S3.
"""

from __future__ import annotations

import uuid

from moto.core.model import OperationModel
from moto.core.parse import RequestParserError, RestXMLParser
from moto.core.request import Request
from moto.core.routing import S3RestRouter
from moto.core.serialize import S3Serializer, SerializationContext
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from local_sagemaker.protocol.bodies import whole_body
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.responses import Response
from local_sagemaker.protocol.signatures import Signature
from local_sagemaker.s3.blobs import Body
from local_sagemaker.s3.calls import MAX_OBJECT, Members, ObjectCalls

MAX_XML = 4 * 1024 * 1024  # bytes of a request that is XML: a thousand keys, ten thousand parts
NOT_OFFERED = (
    "The emulator does not offer S3's {}. It stores, reads, copies, lists and deletes "
    "objects, whole and in parts, with versions."
)


class ObjectProtocol:
    """Answers requests for objects."""

    def __init__(self, calls: ObjectCalls) -> None:
        self.calls = calls
        self.router = S3RestRouter(get_service_model("s3"))

    def respond(self, request: Request, signature: Signature) -> Response | None:
        """The response; None for a request for a bucket, which moto answers. Raises AwsError."""
        try:
            operation, names = self.router.match(request)
        except NotFound:
            if request.method == "POST":  # a browser's form
                raise AwsError("NotImplemented", NOT_OFFERED.format("POST of forms"), 501) from None
            return None
        if operation.name in self.calls.by_name:
            members = _members(operation, names, request, signature)
            return _response(operation, request, self.calls.by_name[operation.name](members))
        if "Key" in names or operation.name == "PutObjectLockConfiguration":
            raise AwsError("NotImplemented", NOT_OFFERED.format(operation.name), 501)
        return None


def _response(operation: OperationModel, request: Request, result: Members) -> Response:
    body = result.pop("Body", None)
    context = SerializationContext(request_id=uuid.uuid4().hex[:16].upper())
    serialized = S3Serializer(operation, context).serialize(result)
    xml = serialized["body"] or b""
    pieces = body if body is not None else [xml.encode() if isinstance(xml, str) else xml]
    headers = {**serialized["headers"], "x-amz-request-id": context.request_id}
    if operation.name in ("GetObject", "HeadObject"):
        headers["Content-Type"] = result["ContentType"]
    elif request.method != "HEAD":
        headers.pop("Content-Length", None)  # werkzeug counts the XML's bytes
    status = 206 if "ContentRange" in result else serialized["status_code"]
    return Response(pieces, status, headers)


def _members(
    operation: OperationModel, names: dict, request: Request, signature: Signature
) -> Members:
    """The request's members. Body, where bytes are stored, is not read yet."""
    streams = operation.name in ("PutObject", "UploadPart")
    xml = b"" if streams else whole_body(request.environ, MAX_XML)
    if not streams:
        signature.verify_body(xml)
    try:
        members = RestXMLParser(operation).parse(
            {
                "method": request.method,
                "values": request.args,
                "headers": request.headers,
                "body": xml,
                "url_path": request.path,
                "url_params": names,
            }
        )
    except RequestParserError as error:
        raise AwsError("MalformedXML", "The XML you provided was not well-formed.") from error
    except (ValueError, TypeError) as error:
        raise AwsError(
            "InvalidArgument", f"A member of the request is not valid: {error}"
        ) from error
    if streams:
        members["Body"] = Body(request, MAX_OBJECT, signature)
    return {name: value for name, value in members.items() if value is not None}
