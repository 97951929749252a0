"""The chain of handlers that answers a request.

authenticate         verifies the signature
invoke_endpoint      SageMaker's runtime: a hosted model answers
s3_object            S3's objects
read_body            reads and verifies the body
sagemaker_operation  training jobs, hosting, batch transforms
moto_operation       all other services and operations: moto
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from xml.parsers.expat import ExpatError

from botocore.credentials import Credentials
from botocore.model import OperationNotFoundError
from moto.core.request import Request
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.test import run_wsgi_app

from local_sagemaker.api import offered
from local_sagemaker.api.runtime import RuntimeApi, endpoint_of
from local_sagemaker.moto_backend.iam import make_owner_role
from local_sagemaker.moto_backend.state import MotoState
from local_sagemaker.protocol import signatures
from local_sagemaker.protocol.bodies import json_object, whole_body
from local_sagemaker.protocol.errors import AwsError, disk_trouble, unknown_operation, validation
from local_sagemaker.protocol.responses import (
    Response,
    check_error_format,
    error_response,
    json_response,
)
from local_sagemaker.protocol.signatures import Signature
from local_sagemaker.protocol.validation import check, exists
from local_sagemaker.s3.calls import ObjectCalls
from local_sagemaker.s3.protocol import ObjectProtocol

LOG = logging.getLogger(__name__)
CBOR_OPERATION = re.compile(r"^/service/[^/]+/operation/(\w+)$")  # CloudWatch's newest protocol
READING = re.compile(r"^(Describe|List|Get|Head|Lookup|Filter|Validate|Estimate|BatchGet)")
# What these add is in the journal at once: the rest of moto's state stays as it is.
JOURNALED = {"PutLogEvents", "PutMetricData"}
MAX_BODY = 6 * 1024 * 1024  # bytes of a request but for S3's objects; AWS's for SageMaker

Operation = Callable[[dict, str], dict | None]


@dataclass
class Call:
    """A request on its way through the handlers, which fill in what they find out."""

    request: Request
    region: str
    service: str
    signature: Signature | None = None
    body: bytes = b""

    @property
    def target(self) -> tuple[str, str]:
        """The service's name and the operation in X-Amz-Target; "" where they are missing."""
        prefix, _, operation = self.request.headers.get("X-Amz-Target", "").rpartition(".")
        return prefix, operation


class Emulator:
    """Answers requests: the first handler that returns a response ends the chain.

    operations: of SageMaker that are answered here, by name. owner: the state directory's key.
    runtime: answers InvokeEndpoint.
    """

    def __init__(
        self,
        operations: dict[str, Operation],
        state: MotoState,
        owner: Credentials,
        runtime: RuntimeApi,
    ) -> None:
        self.operations, self.state, self.owner, self.runtime = operations, state, owner, runtime
        self.objects = ObjectProtocol(ObjectCalls(state.objects))
        make_owner_role(owner.access_key)
        self.moto = DomainDispatcherApplication(_backend)  # type: ignore[arg-type]
        self.handlers = (
            self.authenticate,
            self.invoke_endpoint,
            self.s3_object,
            self.read_body,
            self.sagemaker_operation,
            self.moto_operation,
        )

    def __call__(self, request: Request) -> Response:
        call = Call(request, *signatures.scope(request))
        try:
            for handler in self.handlers:
                if (response := handler(call)) is not None:
                    return response
            raise AssertionError("The last handler answers every call.")
        except ConnectionError:  # the client has disconnected
            raise
        except Exception as error:
            return error_response(_as_aws_error(error, request), request, call.service)

    def authenticate(self, call: Call) -> None:
        call.signature = signature = signatures.authenticate(call.request, self.owner)
        call.region, call.service = signature.region, signature.service
        call.request.environ.setdefault("HTTP_AUTHORIZATION", signature.authorization())
        target = call.request.headers.get("X-Amz-Target", "")
        if target and "." not in target:
            raise unknown_operation(f"X-Amz-Target {target}")

    def invoke_endpoint(self, call: Call) -> Response | None:
        name = endpoint_of(call.request.environ) if call.service == "sagemaker" else None
        if name and call.signature:
            return self.runtime.invoke(name, call.request, call.signature)
        return None

    def s3_object(self, call: Call) -> Response | None:
        if call.service == "s3" and call.signature:
            return self.objects.respond(call.request, call.signature)
        return None

    def read_body(self, call: Call) -> None:
        call.body = whole_body(call.request.environ, MAX_BODY)
        if call.signature:
            call.signature.verify_body(call.body)
        if call.service == "s3" and b"<!DOCTYPE" in call.body:  # entities break moto's XML reader
            raise AwsError("MalformedXML", "The XML has a document type: S3 takes none.")
        call.request.environ["wsgi.input"] = io.BytesIO(call.body)

    def sagemaker_operation(self, call: Call) -> Response | None:
        """The answer to one of `operations`; None for one that moto has to answer."""
        prefix, name = call.target
        if prefix != "SageMaker" and call.service != "sagemaker":
            return None
        if not prefix:
            if not (name := offered.operation_at(call.request) or ""):
                raise unknown_operation(f"{call.request.method} {call.request.path}")
        elif prefix != "SageMaker" or not exists(name):
            raise unknown_operation(f"X-Amz-Target {prefix}.{name}")
        if name not in self.operations:
            if name in offered.KEPT | offered.EMPTY:
                return None
            raise validation(offered.refusal(name))
        members = check(name, json_object(call.body))
        result = self.operations[name](members, call.region)
        return None if result is None else json_response(result)

    def moto_operation(self, call: Call) -> Response:
        action = call.target[1] or _action(call)
        if action in offered.NOT_ALLOWED:
            raise AwsError("AccessDenied", f"The emulator {offered.NOT_ALLOWED[action]}", 403)
        reads = READING.match(action) if action else call.request.method in ("GET", "HEAD")
        with self.state.lock:  # one at a time: moto fills in dictionaries also when it reads
            response = Response(*run_wsgi_app(self.moto, call.request.environ, buffered=True))
            if response.status_code < 400 and not (reads or action in JOURNALED):
                self.state.save()  # before the client is answered
        check_error_format(response, call.request)
        described = call.service == "sagemaker" and action.startswith("Describe")
        if described and response.status_code < 300:
            # moto says {} for what was not given, AWS nothing: the SDK 3 cannot read an empty one.
            members = json.loads(response.get_data())
            return json_response({k: v for k, v in members.items() if v not in ({}, [])})
        return response


def _as_aws_error(error: Exception, request: Request) -> AwsError:
    """What the client is told about an exception of a handler."""
    if isinstance(error, AwsError):
        return error
    if isinstance(error, ExpatError):
        return AwsError("MalformedXML", f"The body is not XML: {error}")
    if isinstance(error, NotImplementedError | OperationNotFoundError):  # moto lacks an operation
        return unknown_operation(str(error))
    if disk_error := disk_trouble(error):
        LOG.error("%s %s: %s", request.method, request.path, error)
        return disk_error
    LOG.error("%s %s failed", request.method, request.path, exc_info=error)
    message = f"{type(error).__name__}: {error}. This is a fault of the emulator."
    return AwsError("InternalFailure", message, 500)


def _backend(service: str | None) -> Callable:
    """moto's application for a service. Raises NotImplementedError for one that it lacks."""
    if service in (None, "moto_api", "instance_metadata"):  # its own pages are no calls of AWS's
        raise NotImplementedError("this service of AWS's.")
    if service == "cloudformation":  # at its first call: to import it, and EC2, takes a second
        import_module("local_sagemaker.moto_backend.cloudformation")  # which patches them
    return create_backend_app(service)  # type: ignore[arg-type]


def _action(call: Call) -> str:
    """The operation of a request without X-Amz-Target: in its path, or as Action=..."""
    if match := CBOR_OPERATION.match(call.request.path):
        return match[1]
    if action := call.request.args.get("Action"):
        return action
    if not (call.request.content_type or "").startswith("application/x-www-form-urlencoded"):
        return ""
    form = re.search(rb"(?:^|&)Action=(\w+)", call.body)
    return form[1].decode() if form else ""
