"""S3's HTTP: from a request to a call on objects, and from its answer to a response.

Which call a request is, its members and its answer's XML follow botocore's model of S3.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable

from moto.core.model import OperationModel
from moto.core.parse import RequestParserError, RestXMLParser
from moto.core.request import Request
from moto.core.routing import S3RestRouter
from moto.core.serialize import S3Serializer, SerializationContext
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

from local_sagemaker.protocol.bodies import whole_body
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.signatures import Signature
from local_sagemaker.s3.bodies import Body
from local_sagemaker.s3.calls import OBJECT_LIMIT, ObjectCalls

BODY_LIMIT = 4 * 1024 * 1024  # bytes of a request that is XML: a thousand keys, ten thousand parts
NOT_OFFERED = (
    "The emulator does not offer S3's {}. It stores, reads, copies, lists and deletes "
    "objects, whole and in parts, with versions."
)


class ObjectProtocol:
    """A WSGI application for calls on objects."""

    def __init__(self, calls: ObjectCalls) -> None:
        self.calls = calls
        self.router = S3RestRouter(get_service_model("s3"))

    def operation(self, environ: dict) -> tuple[OperationModel, dict, Request] | None:
        """The operation on objects that a request asks for, what its address names, and the
        request; None for one on a bucket, which moto answers. Raises AwsError for one that is not
        offered.
        """
        request = Request(environ)
        try:
            operation, names = self.router.match(request)
        except NotFound:
            if environ["REQUEST_METHOD"] == "POST":  # a browser's form
                raise AwsError("NotImplemented", NOT_OFFERED.format("POST of forms"), 501) from None
            return None
        if operation.name in self.calls.by_name:
            return operation, names, request
        if "Key" in names or operation.name == "PutObjectLockConfiguration":
            raise AwsError("NotImplemented", NOT_OFFERED.format(operation.name), 501)
        return None

    def answer(
        self,
        operation: OperationModel,
        names: dict,
        request: Request,
        start_response: Callable,
        signature: Signature,
    ) -> Iterable[bytes]:
        """Do it. Raises AwsError."""
        told = self.calls.by_name[operation.name](_members(operation, names, request, signature))
        body = told.pop("Body", None)
        context = SerializationContext(request_id=uuid.uuid4().hex[:16].upper())
        response = S3Serializer(operation, context).serialize(told)
        raw = (response["body"] or "").encode()
        headers = {**response["headers"], "x-amz-request-id": context.request_id}
        if body is None and request.method != "HEAD":
            headers["Content-Length"] = str(len(raw))
        if operation.name in ("GetObject", "HeadObject"):
            headers["Content-Type"] = told["ContentType"]
        status = 206 if "ContentRange" in told else response["status_code"]
        start_response(f"{status} OK", [(name, str(value)) for name, value in headers.items()])
        if body is not None:
            return body
        return [] if request.method == "HEAD" else [raw]


def _members(
    operation: OperationModel, names: dict, request: Request, signature: Signature
) -> dict:
    """The request's members. Body, where bytes are stored, is not read yet."""
    streams = operation.name in ("PutObject", "UploadPart")
    raw = b"" if streams else whole_body(request.environ, BODY_LIMIT)
    if not streams:
        signature.check_body(raw)
    try:
        members = RestXMLParser(operation).parse(
            {
                "method": request.method,
                "values": request.args,
                "headers": request.headers,
                "body": raw,
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
        members["Body"] = Body(request.environ, OBJECT_LIMIT, signature)
    return {name: value for name, value in members.items() if value is not None}
