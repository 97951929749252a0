"""The WSGI application: SageMaker's jobs and endpoints and S3's objects here, the rest by moto."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterable
from xml.parsers.expat import ExpatError

from botocore.credentials import Credentials
from botocore.model import OperationNotFoundError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from local_sagemaker.api.runtime import RuntimeApi, endpoint_of
from local_sagemaker.moto_services import iam_gaps
from local_sagemaker.moto_services.state import MotoState
from local_sagemaker.protocol import signatures
from local_sagemaker.protocol.answers import answer, as_aws_shapes_it, refuse
from local_sagemaker.protocol.bodies import BAD_URI, json_object, whole_body
from local_sagemaker.protocol.errors import AwsError, disk_trouble, unknown_operation, validation
from local_sagemaker.protocol.validation import check, exists
from local_sagemaker.s3.calls import ObjectCalls
from local_sagemaker.s3.protocol import ObjectProtocol
from local_sagemaker.server import web_pages

LOG = logging.getLogger(__name__)
CBOR_OPERATION = re.compile(r"^/service/[^/]+/operation/(\w+)$")  # CloudWatch's newest protocol
READING = re.compile(r"^(Describe|List|Get|Head|Lookup|Filter|Validate|Estimate|BatchGet)")
# What these add is in the journal at once: the rest of moto's state stays as it is.
JOURNALED = {"PutLogEvents", "PutMetricData"}
# Not "unknown": on AWS few people may do this, so clients know what to do without it. The
# sagemaker SDK 3 asks before each job whether the role may do enough.
NOT_ALLOWED = {
    "GetFederationToken": "The emulator issues no federation tokens: call assume_role.",
    # moto's gives everybody the key of AWS's documentation.
    "GetSessionToken": "The emulator issues no session tokens: call assume_role.",
    "SimulatePrincipalPolicy": "The emulator does not simulate policies: it allows "
    "whatever is asked of it.",
}
BODY_LIMIT = 6 * 1024 * 1024  # bytes of a request but for S3's objects; AWS's for SageMaker

# What is not offered, and what to do instead. Of what computes on AWS moto would say "Completed",
# and run nothing.
PIPELINES = "does not run pipelines. Call fit(), transform() and deploy() one after another."
HUB = "has no model hub (JumpStart). Train or deploy a model of your own."
NOT_OFFERED = {
    "CreateHyperParameterTuningJob": "does not run tuning jobs. Start a training job for each "
    "combination: estimator.fit(wait=False) in a loop.",
    "CreateProcessingJob": "does not run processing jobs. Run the script as a training job, or on "
    "this machine.",
    "CreatePipeline": PIPELINES,
    "StartPipelineExecution": PIPELINES,
    "CreateCompilationJob": "does not run compilation jobs (Neo). Deploy the model as it is.",
    "CreateAutoMLJob": "does not run Autopilot. Train with an estimator.",
    "CreateAutoMLJobV2": "does not run Autopilot. Train with an estimator.",
    "CreateInferenceRecommendationsJob": "does not run recommendation jobs. Time invoke_endpoint "
    "yourself.",
    "CreateMonitoringSchedule": "does not run monitoring schedules.",
    "CreateCluster": "does not run HyperPod clusters. Start training jobs.",
    "CreateEdgePackagingJob": "does not run edge packaging jobs.",
    "UpdateTrainingJob": "does not change a job that exists. Stop it, and create another.",
    "ListAlgorithms": "has no algorithms. Run a script of your own by a framework's estimator.",
    "GetSearchSuggestions": "does not suggest. Call search with a property of DescribeTrainingJob.",
    **dict.fromkeys(("DescribeHub", "DescribeHubContent", "ListHubs", "ListHubContents"), HUB),
}

Handler = Callable[[dict, str], dict]


class Application:
    """Dispatches by operation. operations: those answered here, by name. own: the emulator's key.
    runtime: InvokeEndpoint's answers; without it moto gives them.
    """

    def __init__(
        self,
        operations: dict[str, Handler],
        state: MotoState,
        own: Credentials,
        runtime: RuntimeApi | None = None,
    ) -> None:
        self.operations, self.state, self.runtime = operations, state, runtime
        self.objects = ObjectProtocol(ObjectCalls(state.objects))
        self.own = own
        iam_gaps.fill(own.access_key)
        self.moto = DomainDispatcherApplication(_backend)

    def __call__(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        service = signatures.scope(environ)[1]
        try:
            return self._dispatch(environ, start_response)
        except AwsError as error:
            return refuse(start_response, error, environ, service)
        except ExpatError as error:
            wrong = AwsError("MalformedXML", f"The body is not XML: {error}")
            return refuse(start_response, wrong, environ, service)
        except (NotImplementedError, OperationNotFoundError) as error:  # moto lacks an operation
            return refuse(start_response, unknown_operation(str(error)), environ, service)
        except ConnectionError:  # whoever asked is gone
            raise
        except Exception as error:
            if trouble := disk_trouble(error):
                LOG.error("%s %s: %s", environ["REQUEST_METHOD"], environ["PATH_INFO"], error)
                return refuse(start_response, trouble, environ, service)
            LOG.exception("%s %s failed", environ["REQUEST_METHOD"], environ["PATH_INFO"])
            message = f"{type(error).__name__}: {error}. This is a fault of the emulator."
            fault = AwsError("InternalFailure", message, 500)
            return refuse(start_response, fault, environ, service)

    def _dispatch(self, environ: dict, start_response: Callable) -> Iterable[bytes]:
        if BAD_URI in environ:
            raise AwsError("InvalidURI", f"The request's address is invalid: {environ[BAD_URI]}")
        web_pages.refuse(environ)
        signature = signatures.check_head(environ, self.own)
        region, service = signature.region, signature.service
        environ.setdefault("HTTP_AUTHORIZATION", signature.authorization())
        target = environ.get("HTTP_X_AMZ_TARGET", "")
        if target and "." not in target:
            raise unknown_operation(f"X-Amz-Target {target}")
        if self.runtime and service == "sagemaker" and endpoint_of(environ):
            return self.runtime.invoke(endpoint_of(environ), environ, start_response, signature)
        if service == "s3" and (found := self.objects.operation(environ)):
            return self.objects.answer(*found, start_response, signature)
        prefix, _, operation = target.rpartition(".")
        ours = prefix == "SageMaker" or bool(target and service == "sagemaker")
        body = whole_body(environ, BODY_LIMIT)
        signature.check_body(body)
        if service == "s3" and b"<!DOCTYPE" in body:  # entities; what moto reads XML with breaks
            raise AwsError("MalformedXML", "The XML has a document type: S3 takes none.")
        environ["wsgi.input"] = io.BytesIO(body)
        if ours:
            found = self._own(target, region, environ)
            if found is not None:
                return answer(start_response, found)
            environ["wsgi.input"].seek(0)
        return self._moto(service, operation, environ, start_response)

    def _own(self, target: str, region: str, environ: dict) -> dict | None:
        """The answer to a SageMaker call, or None if moto has to give it."""
        prefix, _, operation = target.rpartition(".")
        if prefix != "SageMaker" or not exists(operation):
            raise unknown_operation(f"X-Amz-Target {target}")
        if operation in NOT_OFFERED:
            raise validation(f"The emulator {NOT_OFFERED[operation]}")
        if operation not in self.operations:
            return None
        request = check(operation, json_object(environ["wsgi.input"].read()))
        return self.operations[operation](request, region)

    def _moto(self, service: str, action: str, environ: dict, start_response) -> list[bytes]:
        action = action or _action(environ)
        if action in NOT_ALLOWED:
            raise AwsError("AccessDenied", NOT_ALLOWED[action], 403)
        held: list[tuple] = []
        if _only_reads(environ, action):
            body = list(self.moto(environ, lambda *told: held.append(told)))
        else:
            with self.state.lock:
                body = list(self.moto(environ, lambda *told: held.append(told)))
                if held[-1][0][0] in "23":
                    self.state.changed()
                    self.state.save()
        as_aws_shapes_it(held[-1][0], body, environ)
        if service == "sagemaker" and action.startswith("Describe") and held[-1][0][0] == "2":
            # moto says {} of what was not given, AWS nothing: the SDK 3 cannot read an empty one.
            told = json.loads(b"".join(body))
            return answer(start_response, {k: v for k, v in told.items() if v not in ({}, [])})
        start_response(*held[-1])  # only now: the client is told of what is on disk
        return body


def _backend(service: str | None) -> Callable:
    """moto's application for a service. Raises NotImplementedError for one that it lacks."""
    if service is None:
        raise NotImplementedError("this service of AWS's.")
    if service == "cloudformation":
        _teach_cloudformation()
    return create_backend_app(service)


def _teach_cloudformation() -> None:
    """At its first call: moto's CloudFormation and EC2 take a second to import."""
    from local_sagemaker.moto_services import cloudformation_gaps, safe_templates

    cloudformation_gaps.fill()
    safe_templates.guard()


def _action(environ: dict) -> str:
    """The operation of a request without X-Amz-Target: in its path, or Action=... in its form."""
    if found := CBOR_OPERATION.match(environ.get("PATH_INFO", "")):
        return found[1]
    if not environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded"):
        return ""
    raw = environ["wsgi.input"].read()
    environ["wsgi.input"].seek(0)
    form = re.search(rb"(?:^|&)Action=(\w+)", raw)
    return form[1].decode() if form else ""


def _only_reads(environ: dict, action: str) -> bool:
    known = environ["REQUEST_METHOD"] in ("GET", "HEAD") or action in JOURNALED
    return known or bool(READING.match(action))
