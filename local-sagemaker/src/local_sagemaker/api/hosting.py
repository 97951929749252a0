"""Create, Describe, List and DeleteEndpoint. Models and configurations are kept by moto.

What moto keeps is checked here first (botocore's model of the request, and names that are taken),
and then given to moto: such a call answers None.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container
from functools import partial

from moto.sagemaker.exceptions import ValidationError

from local_sagemaker.api import listing
from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.core.aws import name_in
from local_sagemaker.core.records import Record, Registry
from local_sagemaker.hosting import model
from local_sagemaker.hosting.endpoint_run import EndpointRun
from local_sagemaker.protocol.errors import validation
from local_sagemaker.storage.files import remove

STARTED_AGAIN = ("Creating", "InService", "SystemUpdating")
# The sagemaker SDK looks every 30 s whether an endpoint is in service. A model is loaded here in
# less: while an endpoint is being created, its description is given once that is over, or then.
DESCRIBE_SECONDS = 50.0  # below the 60 s that botocore waits for an answer

_row = partial(listing.summary, kind="Endpoint")


class Endpoints(Registry):
    """All endpoints, and SageMaker's hosting calls."""

    def recover(self, record: Record) -> None:
        run = self.runs[record.key] = EndpointRun(record, self.aws)
        kill_orphans(run.mark)
        if record.status in STARTED_AGAIN:
            record.set_status("SystemUpdating")

    def start(self) -> None:
        """Start again what was in service. Called once the emulator answers."""
        for run in list(self.runs.values()):
            if run.record.status == "SystemUpdating":
                run.thread.start()

    def operations(self) -> dict[str, Callable[[dict, str], dict | None]]:
        """Operation name -> what answers it. None as an answer means: not ours, ask moto."""
        return {
            "CreateModel": self.create_model,
            "CreateModelPackage": self.create_package,
            "CreateEndpointConfig": self.create_config,
            "CreateEndpoint": self.create,
            "DescribeEndpoint": self.describe,
            "ListEndpoints": self.list,
            "DeleteEndpoint": self.delete,
        }

    def create_model(self, request: dict, region: str) -> None:
        """Checked alone: moto takes a name twice, and AWS does not."""
        _check_new("model", request["ModelName"], model.moto_sagemaker(region)._models, region)

    def create_package(self, request: dict, region: str) -> None:
        if "ValidationSpecification" in request:
            raise validation(
                "ValidationSpecification: the emulator runs no jobs that validate a model package. "
                "Leave it out, and create a transform job."
            )

    def create_config(self, request: dict, region: str) -> None:
        """Checked alone, as in create_model."""
        known = model.moto_sagemaker(region).endpoint_configs
        _check_new("endpoint configuration", request["EndpointConfigName"], known, region)

    def create(self, request: dict, region: str) -> dict:
        name = request["EndpointName"]
        key, arn = name_in(region, name), listing.arn_of("endpoint", name, region)
        try:
            sagemaker = model.moto_sagemaker(region)
            config = sagemaker.describe_endpoint_config(request["EndpointConfigName"])
        except ValidationError as error:
            raise validation(error.message) from error
        variant = _variant(config)
        container = model.container(variant["ModelName"], region)
        # CloudWatch's stream of a variant: <variant>/<instance id>
        stream = f"{variant['VariantName']}/i-{uuid.uuid4().hex[:17]}"
        fields = {"name": name, "arn": arn, "region": region, "stream": stream}
        fields |= {"config": config["EndpointConfigName"], "variant": variant}
        fields["container"] = vars(container)
        with self.lock:
            _check_new("endpoint", name, [r.name for r in self.in_region(region)], region)
            record = Record.create(self.directory / key, request, "Creating", **fields)
            self.records[key], self.runs[key] = record, EndpointRun(record, self.aws)
        self.runs[key].thread.start()
        return {"EndpointArn": arn}

    def describe(self, request: dict, region: str) -> dict:
        run = self._get(request, region)
        if run.record.status in ("Creating", "SystemUpdating"):
            run.settled.wait(DESCRIBE_SECONDS)
        return description(run.record)

    def list(self, request: dict, region: str) -> dict:
        return listing.page(self.in_region(region), request, "Endpoints", _row)

    def delete(self, request: dict, region: str) -> dict:
        with self.lock:
            run = self._get(request, region)
            if run.record.status == "Deleting":
                return {}
            run.record.set_status("Deleting")
        if run.thread.ident is not None:  # else it failed before a restart, and never ran here
            run.end()
        remove(run.directory)
        with self.lock:
            self.records.pop(run.record.key, None)
            self.runs.pop(run.record.key, None)
        return {}

    def _get(self, request: dict, region: str) -> EndpointRun:
        name = request["EndpointName"]
        if (run := self.runs.get(name_in(region, name))) is None:
            raise validation(
                f'Could not find endpoint "{listing.arn_of("endpoint", name, region)}".'
            )
        return run


def description(record: Record) -> dict:
    """DescribeEndpoint's answer."""
    with record.lock:
        data = record.data
        variant = data["variant"]
        shown = {"VariantName": variant["VariantName"]}
        for given, name in (("InstanceCount", "InstanceCount"), ("VariantWeight", "Weight")):
            if (value := variant.get(f"Initial{given}")) is not None:
                shown |= {f"Current{name}": value, f"Desired{name}": value}
        answer = _row(record) | {
            "EndpointConfigName": data["config"],
            "ProductionVariants": [shown],
        }
        return answer | ({"FailureReason": data["reason"]} if "reason" in data else {})


def _check_new(kind: str, name: str, known: Container[str], region: str) -> None:
    # AWS's words: https://github.com/aws/amazon-sagemaker-examples/issues/2491, and
    # https://github.com/awslabs/spot-tagging-bot-for-digital-assets/issues/2
    if name in known:
        arn = listing.arn_of(kind.replace(" configuration", "-config"), name, region)
        raise validation(f'Cannot create already existing {kind} "{arn}".')


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
