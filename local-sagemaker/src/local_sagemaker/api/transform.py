"""Create, Describe, List and StopTransformJob."""

from __future__ import annotations

from collections.abc import Callable

from moto.core import DEFAULT_ACCOUNT_ID

from local_sagemaker.api import listing
from local_sagemaker.core.s3_input import KINDS
from local_sagemaker.hosting import model
from local_sagemaker.hosting.hosting_record import Record
from local_sagemaker.hosting.transform_manager import TransformManager
from local_sagemaker.protocol.errors import validation
from local_sagemaker.protocol.validation import operation

MAX_MB = 100  # "The value of MaxPayloadInMB cannot be greater than 100 MB", botocore's model
NO_FILTERS = {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "None"}


class TransformApi:
    """SageMaker's calls for batch transform, over a TransformManager."""

    def __init__(self, transforms: TransformManager) -> None:
        self.transforms = transforms

    def operations(self) -> dict[str, Callable[[dict, str], dict]]:
        """Operation name -> what answers it."""
        return {
            "CreateTransformJob": self.create,
            "DescribeTransformJob": self.describe,
            "ListTransformJobs": self.list,
            "StopTransformJob": self.stop,
        }

    def create(self, request: dict, region: str) -> dict:
        _check(request)
        container = model.container(self.transforms.aws, request["ModelName"], region)
        name = request["TransformJobName"]
        arn = f"arn:aws:sagemaker:{region}:{DEFAULT_ACCOUNT_ID}:transform-job/{name.lower()}"
        data = {"name": name, "arn": arn, "region": region, "request": request}
        data["tags"] = request.get("Tags", [])
        self.transforms.create(data, container)
        return {"TransformJobArn": arn}

    def describe(self, request: dict, region: str) -> dict:
        return description(self._find(request["TransformJobName"], region))

    def list(self, request: dict, region: str) -> dict:
        records = self.transforms.all(region)
        return listing.page(records, request, "TransformJobSummaries", _summary)

    def stop(self, request: dict, region: str) -> dict:
        self.transforms.stop(self._find(request["TransformJobName"], region))
        return {}

    def _find(self, name: str, region: str) -> Record:
        record = self.transforms.find(name, region)
        if record is None:
            raise validation(f"Could not find requested job with name: {name}")
        return record


def description(record: Record) -> dict:
    """DescribeTransformJob's answer."""
    with record.lock:
        data, request = record.data, record.data["request"]
        known = operation("DescribeTransformJob").output_shape.members
        answer = {name: value for name, value in request.items() if name in known}
        answer.setdefault("DataProcessing", NO_FILTERS)
        answer |= {
            "TransformJobArn": data["arn"],
            "TransformJobStatus": record.status,
            "CreationTime": data["created"],
        }
        if "reason" in data:
            answer["FailureReason"] = data["reason"]
        if "started" in data:
            answer["TransformStartTime"] = data["started"]
        if "ended" in data:
            answer["TransformEndTime"] = data["ended"]
        return answer


def _summary(record: Record) -> dict:
    data = record.data
    answer = {
        "TransformJobName": record.name,
        "TransformJobArn": data["arn"],
        "CreationTime": data["created"],
        "LastModifiedTime": data["modified"],
        "TransformJobStatus": record.status,
    }
    if "ended" in data:
        answer["TransformEndTime"] = data["ended"]
    return answer | ({"FailureReason": data["reason"]} if "reason" in data else {})


def _check(request: dict) -> None:
    """What AWS refuses and no schema states, and what the emulator lacks."""
    given = request["TransformInput"]
    source, split = given["DataSource"]["S3DataSource"], given.get("SplitType", "None")
    if source["S3DataType"] not in KINDS:
        raise _not_offered(f"S3DataType {source['S3DataType']}", f"{' and '.join(KINDS)} are")
    if split not in ("None", "Line"):
        raise _not_offered(f"SplitType {split}", "None and Line are")
    if any(
        request.get("DataProcessing", {}).get(name, none) != none
        for name, none in NO_FILTERS.items()
    ):
        raise _not_offered(
            "DataProcessing (InputFilter, OutputFilter, JoinSource)",
            "filter before and join after, in a script of your own",
        )
    if request.get("DataCaptureConfig"):
        raise _not_offered("DataCaptureConfig", "leave it out")
    megabytes = request.get("MaxPayloadInMB", 0)
    together = megabytes * (request.get("MaxConcurrentTransforms") or 1)
    if megabytes > MAX_MB or together > MAX_MB:
        raise validation(
            f"MaxPayloadInMB ({megabytes}) and MaxConcurrentTransforms * MaxPayloadInMB "
            f"({together}) must not be above {MAX_MB}."
        )
    if request.get("BatchStrategy") == "SingleRecord" and split == "None":
        raise validation("BatchStrategy SingleRecord needs SplitType Line.")


def _not_offered(feature: str, instead: str):
    return validation(f"{feature}: the emulator does not offer that; {instead}.")
