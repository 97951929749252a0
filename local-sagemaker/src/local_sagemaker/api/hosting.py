"""Create, Describe, List and DeleteEndpoint. Models and configurations are kept by moto.

What moto keeps is checked here first (botocore's model of the request, and names that are taken),
and then given to moto: such a call answers None.
"""

from __future__ import annotations

from collections.abc import Callable

from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID

from local_sagemaker.api import listing
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.hosting import model
from local_sagemaker.hosting.endpoint_manager import EndpointManager
from local_sagemaker.hosting.endpoint_run import EndpointRun
from local_sagemaker.protocol.errors import AwsError, validation

# The sagemaker SDK looks every 30 s whether an endpoint is in service. A model is loaded here in
# less: while an endpoint is being created, its description is given once that is over, or then.
DESCRIBE_SECONDS = 50.0  # below the 60 s that botocore waits for an answer
PASSED_ON = (
    "DescribeModel",
    "ListModels",
    "DeleteModel",
    "DescribeEndpointConfig",
    "ListEndpointConfigs",
    "DeleteEndpointConfig",
)


class HostingApi:
    """SageMaker's hosting calls, over an EndpointManager."""

    def __init__(self, endpoints: EndpointManager) -> None:
        self.endpoints, self.aws = endpoints, endpoints.aws

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        return {name: lambda request, region: None for name in PASSED_ON} | {
            "CreateModel": self.create_model,
            "CreateEndpointConfig": self.create_config,
            "CreateEndpoint": self.create,
            "DescribeEndpoint": self.describe,
            "ListEndpoints": self.list,
            "DeleteEndpoint": self.delete,
            "UpdateEndpoint": self.update,
        }

    def create_model(self, request: dict, region: str) -> None:
        """Checked alone: moto takes a name twice, and AWS does not."""
        name, client = request["ModelName"], self.aws.client("sagemaker", region)
        if _exists(lambda: client.describe_model(ModelName=name)):
            raise validation(
                f'Cannot create already existing model "{_arn(region, "model", name)}".'
            )

    def create_config(self, request: dict, region: str) -> None:
        """Checked alone, as in create_model."""
        name, client = request["EndpointConfigName"], self.aws.client("sagemaker", region)
        if _exists(lambda: client.describe_endpoint_config(EndpointConfigName=name)):
            arn = _arn(region, "endpoint-config", name)
            # AWS's words: https://github.com/awslabs/spot-tagging-bot-for-digital-assets/issues/2
            raise validation(f'Cannot create already existing endpoint configuration "{arn}".')

    def create(self, request: dict, region: str) -> dict:
        name = request["EndpointName"]
        config = _config(self.aws, request["EndpointConfigName"], region)
        variant = _variant(config)
        arn = _arn(region, "endpoint", name)
        data = {"name": name, "arn": arn, "region": region, "request": request}
        data |= {"config": config["EndpointConfigName"], "variant": variant}
        data["tags"] = request.get("Tags", [])
        self.endpoints.create(data, model.container(self.aws, variant["ModelName"], region))
        return {"EndpointArn": arn}

    def describe(self, request: dict, region: str) -> dict:
        run = self._find(request["EndpointName"], region)
        if run.record.status in ("Creating", "SystemUpdating"):
            run.settled.wait(DESCRIBE_SECONDS)
        return description(run)

    def list(self, request: dict, region: str) -> dict:
        records = [run.record for run in self.endpoints.all() if run.region == region]
        return listing.page(records, request, "Endpoints", _summary)

    def delete(self, request: dict, region: str) -> dict:
        if not self.endpoints.delete(request["EndpointName"], region):
            raise _not_found(request["EndpointName"], region)
        return {}

    def update(self, request: dict, region: str) -> dict:
        self._find(request["EndpointName"], region)
        raise validation(
            "The emulator does not offer UpdateEndpoint: delete the endpoint and create it "
            "with the other configuration."
        )

    def _find(self, name: str, region: str) -> EndpointRun:
        run = self.endpoints.find(name, region)
        if run is None:
            raise _not_found(name, region)
        return run


def description(run: EndpointRun) -> dict:
    """DescribeEndpoint's answer."""
    with run.record.lock:
        data = run.record.data
        variant = data["variant"]
        shown = {"VariantName": variant["VariantName"]}
        if "InitialInstanceCount" in variant:
            count = variant["InitialInstanceCount"]
            shown |= {"CurrentInstanceCount": count, "DesiredInstanceCount": count}
        if "InitialVariantWeight" in variant:
            weight = variant["InitialVariantWeight"]
            shown |= {"CurrentWeight": weight, "DesiredWeight": weight}
        answer = _summary(run.record) | {
            "EndpointConfigName": data["config"],
            "ProductionVariants": [shown],
        }
        return answer | ({"FailureReason": data["reason"]} if "reason" in data else {})


def _summary(record) -> dict:
    data = record.data
    return {
        "EndpointName": record.name,
        "EndpointArn": data["arn"],
        "CreationTime": data["created"],
        "LastModifiedTime": data["modified"],
        "EndpointStatus": record.status,
    }


def _config(aws: LocalAws, name: str, region: str) -> dict:
    try:
        client = aws.client("sagemaker", region)
        return client.describe_endpoint_config(EndpointConfigName=name)
    except ClientError as error:
        raise validation(error.response["Error"]["Message"]) from error


def _variant(config: dict) -> dict:
    """The one variant of a configuration. Raises AwsError for what is not offered here."""
    variants, capture = config["ProductionVariants"], config.get("DataCaptureConfig") or {}
    feature = None
    if len(variants) > 1:
        feature = "several ProductionVariants; it has one worker for each endpoint"
    elif config.get("AsyncInferenceConfig"):
        feature = "AsyncInferenceConfig"
    elif capture.get("EnableCapture"):
        feature = "DataCaptureConfig"
    if feature:
        raise validation(f"The emulator does not offer {feature}.")
    return variants[0]


def _exists(describe: Callable[[], dict]) -> bool:
    try:
        describe()
        return True
    except ClientError:
        return False


def _arn(region: str, kind: str, name: str) -> str:
    return f"arn:aws:sagemaker:{region}:{DEFAULT_ACCOUNT_ID}:{kind}/{name.lower()}"


def _not_found(name: str, region: str) -> AwsError:
    return validation(f'Could not find endpoint "{_arn(region, "endpoint", name)}".')
