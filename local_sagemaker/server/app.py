"""The WSGI application: SageMaker's training calls here, everything else to moto."""

from __future__ import annotations

import io
import json
import logging
import re
import uuid
from collections.abc import Callable, Iterable

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local_sagemaker.server.errors import AwsError
from local_sagemaker.server.moto_state import MotoState
from local_sagemaker.server.validation import check

LOG = logging.getLogger(__name__)
CREDENTIAL = re.compile(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request")
READING = re.compile(r"^(Describe|List|Get|Head|Lookup|Filter|Validate|Estimate|BatchGet)")
# Frequent, and written again from the job's own files after a crash: saved in the background.
SAVED_LATER = {"PutLogEvents", "PutMetricData"}
DEFAULT_REGION = "us-east-1"
BODY_LIMIT = 6 * 1024 * 1024  # bytes of a JSON request; AWS's limit for SageMaker

Handler = Callable[[dict, str], dict]


class Application:
    """Dispatches by operation. operations: those answered here, by name."""

    def __init__(self, operations: dict[str, Handler], state: MotoState) -> None:
        self.operations, self.state = operations, state
        self.moto = DomainDispatcherApplication(create_backend_app)

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        region, service = _scope(environ)
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        operation = target.removeprefix("SageMaker.")
        if target.startswith("SageMaker.") and operation in self.operations:
            return self._own(operation, region, environ, start_response)
        return self._moto(service, target, environ, start_response)

    def _own(self, operation: str, region: str, environ: dict, start_response) -> list[bytes]:
        try:
            body = check(operation, _json_body(environ))
            answer = self.operations[operation](body, region)
            if answer is None:  # not one of ours after all (a tag on somebody else's resource)
                raw = json.dumps(body).encode()
                environ["wsgi.input"], environ["CONTENT_LENGTH"] = io.BytesIO(raw), str(len(raw))
                target = environ["HTTP_X_AMZ_TARGET"]
                return self._moto("sagemaker", target, environ, start_response)
            return _respond(start_response, 200, answer)
        except AwsError as error:
            body = {"__type": error.code, "message": error.message}
            return _respond(start_response, error.status, body, error.code)
        except Exception as error:
            LOG.exception("%s failed", operation)
            message = f"{type(error).__name__}: {error}. This is a fault of the local endpoint."
            body = {"__type": "InternalFailure", "message": message}
            return _respond(start_response, 500, body, "InternalFailure")

    def _moto(self, service: str, target: str, environ: dict, start_response) -> list[bytes]:
        _read_whole_body(environ)
        action = target.rpartition(".")[2] or _form_action(environ)
        if _only_reads(environ, action):
            return list(self.moto(environ, start_response))
        statuses = []

        def note(status: str, headers: list, *rest):
            statuses.append(status)
            return start_response(status, headers, *rest)

        with self.state.lock:
            answer = list(self.moto(environ, note))
            if statuses and statuses[-1][0] in "23":
                self.state.changed(service)
                if action not in SAVED_LATER:
                    self.state.save()
        return answer


def _scope(environ: dict) -> tuple[str, str]:
    """The region and service that a request was signed for."""
    signed = environ.get("HTTP_AUTHORIZATION", "") + environ.get("QUERY_STRING", "").replace(
        "%2F", "/"
    ).replace("X-Amz-Credential=", "Credential=")
    found = CREDENTIAL.search(signed)
    return (found[1], found[2]) if found else (DEFAULT_REGION, "s3")


def _json_body(environ: dict) -> object:
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_LIMIT:
        raise AwsError("RequestEntityTooLarge", f"The request is over {BODY_LIMIT} bytes.", 413)
    raw = environ["wsgi.input"].read(length)
    try:
        body = json.loads(raw or b"{}")
    except (ValueError, RecursionError) as error:
        raise AwsError("SerializationException", f"The body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise AwsError("SerializationException", "The body is not a JSON object.")
    return body


def _read_whole_body(environ: dict) -> None:
    """Read the body before the state's lock is taken: a slow client must not hold it."""
    length = environ.get("CONTENT_LENGTH")
    if length and length.isdigit():
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))


def _form_action(environ: dict) -> str:
    """The Action of a query-protocol request (EC2, IAM, STS, CloudFormation)."""
    if not environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return ""
    raw = environ["wsgi.input"].read()
    environ["wsgi.input"].seek(0)
    found = re.search(rb"(?:^|&)Action=(\w+)", raw)
    return found[1].decode() if found else ""


def _only_reads(environ: dict, action: str) -> bool:
    return environ["REQUEST_METHOD"] in ("GET", "HEAD") or bool(READING.match(action))


def _respond(start_response, status: int, body: dict, code: str = "") -> list[bytes]:
    raw = json.dumps(body).encode()
    headers = [
        ("Content-Type", "application/x-amz-json-1.1"),
        ("Content-Length", str(len(raw))),
        ("x-amzn-RequestId", str(uuid.uuid4())),
    ]
    if code:
        headers.append(("x-amzn-ErrorType", code))
    start_response(f"{status} {'OK' if status == 200 else code}", headers)
    return [raw]
