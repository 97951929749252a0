"""InvokeEndpoint: the one call of SageMaker's runtime, which has a protocol of its own (restJson).

Errors are in AWS's words: https://github.com/aws/amazon-sagemaker-examples/issues/1809 (an error
of the model), https://github.com/RamVegiraju/SageMaker-Deployment/issues/3 (the time limit),
https://github.com/aws/amazon-sagemaker-examples/issues/293 (no such endpoint), read 2026-11-21.
"""

from __future__ import annotations

import json
import re
from functools import cache
from urllib.parse import unquote

import botocore.session
import urllib3
from moto.core import DEFAULT_ACCOUNT_ID
from werkzeug.wrappers import Request as HttpRequest

from local_sagemaker.api.hosting import Endpoints
from local_sagemaker.core.aws import name_in
from local_sagemaker.core.records import Record, shorten
from local_sagemaker.hosting import worker
from local_sagemaker.hosting.endpoint_run import GROUP, EndpointRun
from local_sagemaker.hosting.runtime.http import ATTRIBUTES
from local_sagemaker.protocol.bodies import whole_body
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.protocol.responses import Response, respond
from local_sagemaker.protocol.signatures import Signature

PATH = re.compile(r"^/endpoints/([^/]+)/invocations$")
MESSAGE_LIMIT = 2048  # characters; the shape Message in botocore's model of the runtime
TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container primary. Review the "
    "latency metrics for each container in Amazon CloudWatch, resolve the issue, and try again."
)
EXITED = "An error occurred while handling request as the model process exited."
SERVED = ("InService", "SystemUpdating")


class ModelError(AwsError):
    """The model did not answer, or not with status 200 (0: not at all)."""

    def __init__(self, record: Record, status: int, original: str) -> None:
        original = shorten(original, MESSAGE_LIMIT)
        side = "client" if 400 <= status < 500 else "server"
        region, group = record.region, f"{GROUP}{record.name}"
        super().__init__(
            "ModelError",
            f'Received {side} error ({status}) from primary with message "{original}". See '
            f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}"
            f"#logEventViewer:group={group} in account {DEFAULT_ACCOUNT_ID} for more information.",
            424,
        )
        arn = f"arn:aws:logs:{region}:{DEFAULT_ACCOUNT_ID}:log-group:{group}"
        self.fields = {"OriginalMessage": original, "OriginalStatusCode": status}
        self.fields |= {"LogStreamArn": arn}


@cache
def body_limit() -> int:
    """The most bytes of a request and of an answer, as botocore's model of the runtime has it."""
    runtime = botocore.session.get_session().get_service_model("sagemaker-runtime")
    shape = runtime.operation_model("InvokeEndpoint").input_shape.members["Body"]
    return shape.metadata["max"]


def endpoint_of(environ: dict) -> str | None:
    """The endpoint that a request wants to invoke; None if it is another call."""
    match = PATH.match(environ.get("PATH_INFO", ""))
    return unquote(match[1]) if match and environ["REQUEST_METHOD"] == "POST" else None


class RuntimeApi:
    """Answers InvokeEndpoint, over all endpoints."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.endpoints = endpoints

    def invoke(self, name: str, request: HttpRequest, signature: Signature) -> Response:
        """Answer a request. Its body is not read yet, and its signature not checked with it."""
        environ = request.environ
        try:
            body = whole_body(environ, body_limit())
            signature.verify_body(body)
            run = self._find(name, signature.region, environ)
            answer = self._ask(run, body, environ)
        except AwsError as error:
            code = "ValidationError" if error.status == 413 else error.code
            fields = {"Message": error.message, "message": error.message}
            raw = json.dumps(fields | getattr(error, "fields", {})).encode()
            return respond(f"{error.status} {code}", "application/json", raw, code)
        kind = answer.headers.get("Content-Type", "application/octet-stream")
        response = respond("200 OK", kind, answer.data)
        variant = run.record.data["variant"]["VariantName"]
        response.headers["x-Amzn-Invoked-Production-Variant"] = variant
        return response

    def _ask(self, run: EndpointRun, body: bytes, environ: dict) -> urllib3.BaseHTTPResponse:
        # "SageMaker strips all POST headers except those supported"
        headers = {
            "Content-Type": environ.get("CONTENT_TYPE"),
            "Accept": environ.get("HTTP_ACCEPT"),
            ATTRIBUTES: environ.get("HTTP_X_AMZN_SAGEMAKER_CUSTOM_ATTRIBUTES"),
        }
        record = run.record
        try:
            answer = run.ask(body, {name: value for name, value in headers.items() if value})
        except worker.NotTaken as error:
            message = f"Endpoint {record.name} has no worker that answers. Describe it, and retry."
            raise AwsError("ServiceUnavailable", message, 503) from error
        except worker.TooSlow as error:
            raise ModelError(record, 0, TIMED_OUT) from error
        except worker.Gone as error:
            raise ModelError(record, 0, EXITED) from error
        if answer.status != 200:
            raise ModelError(record, answer.status, answer.data.decode("utf-8", "replace"))
        if len(answer.data) > body_limit():
            message = f"Its answer has {len(answer.data)} bytes; the limit is {body_limit()}."
            raise ModelError(record, answer.status, message)
        return answer

    def _find(self, name: str, region: str, environ: dict) -> EndpointRun:
        run: EndpointRun | None = self.endpoints.runs.get(name_in(region, name))
        if run is None or run.record.status not in SERVED:
            message = f"Endpoint {name} of account {DEFAULT_ACCOUNT_ID} not found."
            raise AwsError("ValidationError", message)
        variant = environ.get("HTTP_X_AMZN_SAGEMAKER_TARGET_VARIANT")
        known = run.record.data["variant"]["VariantName"]
        if variant not in (None, known):
            message = f"Variant {variant} not found: endpoint {name} has {known}."
            raise AwsError("ValidationError", message)
        if "HTTP_X_AMZN_SAGEMAKER_TARGET_MODEL" in environ:
            raise AwsError("ValidationError", f"TargetModel: endpoint {name} serves one model.")
        return run
