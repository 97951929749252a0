"""Create, Describe, List, Search for, Stop and Delete training jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from local_sagemaker.api import listing, offered
from local_sagemaker.cluster.orphans import kill_orphans
from local_sagemaker.cluster.spec import MAX_INSTANCES, NAMESPACES
from local_sagemaker.core.aws import LocalAws, name_in
from local_sagemaker.core.records import CRASHED, JOIN_SECONDS, Registry
from local_sagemaker.protocol.errors import NOT_FOUND, AwsError, not_offered, validation
from local_sagemaker.protocol.validation import operation
from local_sagemaker.storage.files import remove
from local_sagemaker.training import artifacts, channels, job_log, spot
from local_sagemaker.training.connectivity import connectivity_for_job
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.job_run import JobRun
from local_sagemaker.training.shared_folder import shared_folder
from local_sagemaker.training.spot import DAY

LOG = logging.getLogger(__name__)
OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
SWITCHES = (
    "EnableNetworkIsolation",
    "EnableInterContainerTrafficEncryption",
    "EnableManagedSpotTraining",
)
STOPPING_DEFAULTS = {"MaxRuntimeInSeconds": DAY}


class TrainingJobs(Registry):
    """All training jobs, and SageMaker's calls for them.

    grace_seconds: from SIGTERM to SIGKILL.
    """

    kind = JobRecord

    def __init__(
        self, directory: Path, aws: LocalAws, isolation: str, grace_seconds: float
    ) -> None:
        self.isolation, self.grace_seconds = isolation, grace_seconds
        super().__init__(directory, aws)

    def recover(self, record: JobRecord) -> None:
        if not record.ended:
            orphans = kill_orphans(self.aws.mark(record.key))
            record.end("Failed", reason=CRASHED)
            LOG.warning("%s did not survive; %d processes were killed", record.name, orphans)
            record.remove_all_else()

    def operations(self) -> dict[str, Callable[[dict, str], dict]]:
        return {
            "CreateTrainingJob": self.create,
            "DescribeTrainingJob": self.describe,
            "ListTrainingJobs": self.list,
            "Search": self.search,
            "StopTrainingJob": self.stop,
            "DeleteTrainingJob": self.delete,
        }

    def create(self, request: dict, region: str) -> dict:
        _refuse_malformed(request, self.isolation)
        _refuse_not_offered(request)
        spot.check(request)
        artifacts.check(request)
        job_log.check(request)
        shared_folder(request)
        channels.check(self.aws, request, region)
        connectivity = connectivity_for_job(self.aws, request, region)
        name = request["TrainingJobName"]
        key = name_in(region, name)
        arn = listing.arn_of("training-job", name, region)
        with self.lock:
            self._check_limit(request["ResourceConfig"]["InstanceCount"])
            if key in self.records:
                raise AwsError(
                    "ResourceInUse",
                    "Training job names must be unique within an AWS account and region, and a "
                    f"training job with this name already exists ({arn})",
                )
            record = JobRecord.create(self.directory / key, request, arn=arn, region=region)
            run = JobRun(record, self.aws, self.isolation, self.grace_seconds, connectivity)
            self.records[key], self.runs[key] = record, run
        self.runs[key].thread.start()
        return {"TrainingJobArn": arn}

    def _check_limit(self, count: int) -> None:
        """Raise AwsError if `count` more instances are too many. AWS does not queue such a job."""
        used = sum(
            run.record.request["ResourceConfig"]["InstanceCount"]
            for run in self.runs.values()
            if run.thread.is_alive()
        )
        if used + count > MAX_INSTANCES:
            raise AwsError(
                "ResourceLimitExceeded",
                "The account-level service limit 'Number of instances across all training jobs' "
                f"is {MAX_INSTANCES} Instances, with current utilization of {used} "
                f"Instances and a request delta of {count} Instances. Wait for a job, or stop one: "
                "`local-sagemaker jobs` lists them.",
            )

    def describe(self, request: dict, region: str) -> dict:
        return description(self._get(request, region))

    def stop(self, request: dict, region: str) -> dict:
        record = self._get(request, region)
        if record.stopping():
            self.runs[record.key].stop()
        elif record.ended:
            raise validation(
                f"The request was rejected because the training job is in status {record.status}."
            )
        return {}

    def delete(self, request: dict, region: str) -> dict:
        key = name_in(region, request["TrainingJobName"])
        run = self.runs.get(key)
        if run and run.record.ended:
            # The status is final a moment before the job's thread has put its files away.
            run.thread.join(JOIN_SECONDS)
        with self.lock:
            record = self.records.get(key)
            if record is None:
                raise AwsError("ResourceNotFound", NOT_FOUND)
            if not record.ended or (run and run.thread.is_alive()):
                raise AwsError(
                    "ResourceInUse",
                    f"The training job {record.name} is {record.status}. Only a job that is "
                    "Completed, Failed or Stopped can be deleted.",
                )
            remove(record.path.parent)
            self.records.pop(key)
            self.runs.pop(key, None)
        return {}

    def _get(self, request: dict, region: str) -> JobRecord:
        if (record := self.find(request["TrainingJobName"], region)) is None:
            raise validation(NOT_FOUND)
        return record

    def list(self, request: dict, region: str) -> dict:
        # Nothing stays warm here: a question for warm pools finds none.
        records = [] if "WarmPoolStatusEquals" in request else self.in_region(region)
        return listing.page(records, request, "TrainingJobSummaries", _row)

    def search(self, request: dict, region: str) -> dict:
        if request["Resource"] != "TrainingJob":
            raise validation(
                f"Search for {request['Resource']}: the emulator finds training jobs only."
            )
        if request.get("SortBy", "CreationTime") != "CreationTime":
            raise validation(f"SortBy {request['SortBy']}: the emulator sorts by CreationTime.")
        expression = request.get("SearchExpression", {})
        every = self.in_region(region)
        records = [record for record in every if listing.matches(_properties(record), expression)]
        return listing.page(
            records,
            request,
            "Results",
            lambda job: {"TrainingJob": description(job) | {"Tags": job.data["tags"]}},
        )


def _refuse_malformed(request: dict, isolation: str) -> None:
    """What AWS refuses and no schema states."""
    resources = request.get("ResourceConfig") or {}
    if "InstanceType" not in resources or "InstanceCount" not in resources:
        raise validation(
            "ResourceConfig needs InstanceType and InstanceCount. (Instance groups exist on AWS; "
            "the emulator has one group of equal instances.)"
        )
    if resources["InstanceCount"] < 1:  # _check_limit knows how many there may be
        raise validation(f"InstanceCount is {resources['InstanceCount']}: a job has at least one.")
    algorithm = request.get("AlgorithmSpecification") or {}
    if not algorithm.get("TrainingImage"):
        raise validation("AlgorithmSpecification needs TrainingImage.")
    if algorithm.get("ContainerEntrypoint"):
        if isolation != NAMESPACES:
            raise validation(
                "AlgorithmSpecification has a ContainerEntrypoint. Such a command finds its files "
                "under /opt/ml, which instances have of their own only where Linux namespaces can "
                "be made; `local-sagemaker status` says why they cannot be here."
            )
        return
    hyperparameters = request.get("HyperParameters", {})
    if algorithm.get("ContainerArguments"):
        raise validation(
            "AlgorithmSpecification has ContainerArguments and no ContainerEntrypoint. They would "
            "go to the image's own entrypoint, and the emulator pulls no image."
        )
    if "sagemaker_program" not in hyperparameters:
        raise validation(
            "HyperParameters has no sagemaker_program, and AlgorithmSpecification no "
            "ContainerEntrypoint. The emulator runs scripts of the framework images "
            "(script mode), as the sagemaker SDK's TensorFlow(...) and PyTorch(...) send them, "
            "or a command of your own; it cannot run an image."
        )
    if hyperparameters.get("sagemaker_submit_directory") is None:
        raise validation("HyperParameters has no sagemaker_submit_directory: where is the script?")


def _refuse_not_offered(request: dict) -> None:
    """Refuse what would otherwise be ignored silently."""
    for member, instead in offered.JOB_MEMBERS.items():
        if request.get(member):
            raise not_offered(member, instead)
    if request.get("DebugHookConfig", {}).get("CollectionConfigurations"):
        raise validation(
            "DebugHookConfig has CollectionConfigurations, and nothing here saves tensors: write "
            "what you want to see with TensorBoard (TensorBoardOutputConfig)."
        )


def description(record: JobRecord) -> dict:
    """DescribeTrainingJob's answer."""
    with record.lock:  # status and transitions change together
        data, request = record.data, record.request
        known = operation("DescribeTrainingJob").output_shape.members
        answer = {name: value for name, value in request.items() if name in known}
        answer |= _row(record)
        answer |= {
            "SecondaryStatusTransitions": data["transitions"],
            "FinalMetricDataList": [
                {"MetricName": name, "Value": value, "Timestamp": at}
                for name, (value, at) in data["metrics"].items()
            ],
            "ProfilingStatus": "Disabled",
            # Filled in as AWS does; the SDK's `attach` relies on it.
            "OutputDataConfig": OUTPUT_DEFAULTS | request["OutputDataConfig"],
            "StoppingCondition": STOPPING_DEFAULTS | request.get("StoppingCondition", {}),
            "ResourceConfig": {"VolumeSizeInGB": 0} | request["ResourceConfig"],
        }
        for switch in SWITCHES:
            answer.setdefault(switch, False)
        if uri := data.get("artifacts"):
            answer["ModelArtifacts"] = {"S3ModelArtifacts": uri}
        if "reason" in data:
            answer["FailureReason"] = data["reason"]
        if "started" in data:
            answer["TrainingStartTime"] = data["started"]
            if "ended" in data:
                spent = data.get("seconds", data["ended"] - data["started"])
                seconds = max(1, round(spent))
                answer["TrainingTimeInSeconds"] = answer["BillableTimeInSeconds"] = seconds
        else:
            answer.pop("TrainingEndTime", None)  # it never trained
        return answer


def _properties(record: JobRecord) -> dict:
    """What a search may ask of a job."""
    tags = {tag["Key"]: tag["Value"] for tag in record.data["tags"]}
    return description(record) | {"Tags": tags}


def _row(record: JobRecord) -> dict:
    status = record.data["transitions"][-1]["Status"]
    return listing.summary(record, "TrainingJob") | {"SecondaryStatus": status}
