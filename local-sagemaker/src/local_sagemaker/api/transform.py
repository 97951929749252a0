"""Create, Describe, List and StopTransformJob."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

from local_sagemaker.api import listing
from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.core.aws import name_in
from local_sagemaker.core.records import CRASHED, Record, Registry
from local_sagemaker.core.s3_input import KIND
from local_sagemaker.hosting import model
from local_sagemaker.hosting.transform_run import TransformRun
from local_sagemaker.protocol.errors import AwsError, not_offered, validation
from local_sagemaker.protocol.validation import operation

RUNNING = ("InProgress", "Stopping")
MAX_MB = 100  # "The value of MaxPayloadInMB cannot be greater than 100 MB", botocore's model
NO_FILTERS = {"InputFilter": "$", "OutputFilter": "$", "JoinSource": "None"}


class TransformJobs(Registry):
    """All transform jobs, and SageMaker's calls for them."""

    def recover(self, record: Record) -> None:
        if record.status in RUNNING:
            kill_orphans(TransformRun(record, self.aws).mark)
            record.set_status("Failed", CRASHED, ended=time.time())
            record.remove_all_else()

    def operations(self) -> dict[str, Callable[[dict, str], dict]]:
        return {
            "CreateTransformJob": self.create,
            "DescribeTransformJob": self.describe,
            "ListTransformJobs": self.list,
            "StopTransformJob": self.stop,
        }

    def create(self, request: dict, region: str) -> dict:
        _check(request)
        container = model.container(request["ModelName"], region)
        name = request["TransformJobName"]
        key = name_in(region, name)
        arn = listing.arn_of("transform-job", name, region)
        with self.lock:
            if key in self.records:
                raise AwsError(
                    "ResourceInUse",
                    "Job name must be unique within an AWS account and region, and a job with this "
                    f"name already exists ({arn})",
                )
            # CloudWatch's stream: <job>/<instance id>-<seconds>
            stream = f"{name}/i-{uuid.uuid4().hex[:17]}-{int(time.time())}"
            fields = {"name": name, "arn": arn, "region": region, "stream": stream}
            fields["container"] = vars(container)
            record = Record.create(self.directory / key, request, "InProgress", **fields)
            self.records[key], self.runs[key] = record, TransformRun(record, self.aws)
        self.runs[key].thread.start()
        return {"TransformJobArn": arn}

    def describe(self, request: dict, region: str) -> dict:
        return description(self._get(request, region))

    def list(self, request: dict, region: str) -> dict:
        return listing.page(self.in_region(region), request, "TransformJobSummaries", _row)

    def stop(self, request: dict, region: str) -> dict:
        record = self._get(request, region)
        with record.lock:
            if record.status not in RUNNING:
                raise validation(
                    "The request was rejected because the transform job is in status "
                    f"{record.status}."
                )
            record.set_status("Stopping")
        self.runs[record.key].kill()
        return {}

    def _get(self, request: dict, region: str) -> Record:
        name = request["TransformJobName"]
        if (record := self.find(name, region)) is None:
            raise validation(f"Could not find requested job with name: {name}")
        return record


def description(record: Record) -> dict:
    """DescribeTransformJob's answer."""
    with record.lock:
        known = operation("DescribeTransformJob").output_shape.members
        answer = {name: value for name, value in record.request.items() if name in known}
        answer.setdefault("DataProcessing", NO_FILTERS)
        answer |= _row(record)
        del answer["LastModifiedTime"]
        if "started" in record.data:
            answer["TransformStartTime"] = record.data["started"]
        return answer


def _row(record: Record) -> dict:
    reason = {"FailureReason": record.data["reason"]} if "reason" in record.data else {}
    return listing.summary(record, "TransformJob") | reason


def _check(request: dict) -> None:
    """What AWS refuses and no schema states, and what the emulator lacks."""
    given = request["TransformInput"]
    source, split = given["DataSource"]["S3DataSource"], given.get("SplitType", "None")
    if source["S3DataType"] != KIND:
        raise not_offered(f"S3DataType {source['S3DataType']}", f"{KIND} is")
    if given.get("CompressionType", "None") != "None":
        raise not_offered("CompressionType", "unpack the objects")
    if split not in ("None", "Line"):
        raise not_offered(f"SplitType {split}", "None and Line are")
    if NO_FILTERS | request.get("DataProcessing", {}) != NO_FILTERS:
        raise not_offered(
            "DataProcessing (InputFilter, OutputFilter, JoinSource)",
            "filter before and join after, in a script of your own",
        )
    if request.get("DataCaptureConfig"):
        raise not_offered("DataCaptureConfig", "leave it out")
    megabytes = request.get("MaxPayloadInMB", 0)
    together = megabytes * (request.get("MaxConcurrentTransforms") or 1)
    if max(megabytes, together) > MAX_MB:
        raise validation(
            f"MaxPayloadInMB ({megabytes}) and MaxConcurrentTransforms * MaxPayloadInMB "
            f"({together}) must not be above {MAX_MB}."
        )
    if request.get("BatchStrategy") == "SingleRecord" and split == "None":
        raise validation("BatchStrategy SingleRecord needs SplitType Line.")
