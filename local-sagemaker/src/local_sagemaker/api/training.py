"""Create, Describe, List, Search for, Stop and Delete training jobs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from moto.core import DEFAULT_ACCOUNT_ID

from local_sagemaker.api import listing, search
from local_sagemaker.cluster.spec import NAMESPACES
from local_sagemaker.protocol.errors import validation
from local_sagemaker.protocol.validation import operation
from local_sagemaker.training import artifacts, channels, metrics, spot
from local_sagemaker.training.connectivity import connectivity_for_job
from local_sagemaker.training.job_bandwidth import bandwidth_for_job
from local_sagemaker.training.job_manager import JobManager
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.spot import DAY

RULES = "leave the estimator's rules out, and check the logged metrics in the script"
NOT_OFFERED = {
    "DebugRuleConfigurations": RULES,
    "ProfilerRuleConfigurations": RULES,
    "ExperimentConfig": "leave experiment_config out, and compare jobs by their metrics",
    "ServerlessJobConfig": "give ResourceConfig instances",
    "ModelPackageConfig": "create a model from the job's model.tar.gz",
    "MlflowConfig": "log to sqlite:////opt/ml/output/data/mlflow.db, which output.tar.gz brings",
    "SessionChainingConfig": "jobs have the emulator's own key",
}
SORTED = {  # Search's name of a property -> ListTrainingJobs's
    "CreationTime": "CreationTime",
    "TrainingJobName": "Name",
    "TrainingJobStatus": "Status",
}
OUTPUT_DEFAULTS = {"KmsKeyId": "", "CompressionType": "GZIP"}
STOPPING_DEFAULTS = {"MaxRuntimeInSeconds": DAY}


class TrainingApi:
    """SageMaker's training calls, over a JobManager."""

    def __init__(self, jobs: JobManager) -> None:
        self.jobs = jobs

    def operations(self) -> dict[str, Callable[[dict, str], dict]]:
        """Operation name -> what answers it."""
        return {
            "CreateTrainingJob": self.create,
            "DescribeTrainingJob": self.describe,
            "ListTrainingJobs": self.list,
            "Search": self.search,
            "StopTrainingJob": self.stop,
            "DeleteTrainingJob": self.delete,
        }

    def create(self, request: dict, region: str) -> dict:
        _check(request, self.jobs.isolation)
        _check_offered(request)
        spot.check(request)
        artifacts.check(request)
        metrics.check(request)
        channels.check(self.jobs.aws, request, region)
        connectivity = dataclasses.replace(
            connectivity_for_job(self.jobs.aws, request, region),
            bandwidth=bandwidth_for_job(request, self.jobs.state),
        )
        name = request["TrainingJobName"]
        arn = f"arn:aws:sagemaker:{region}:{DEFAULT_ACCOUNT_ID}:training-job/{name}"
        record = self.jobs.create(request, arn, region, connectivity)
        return {"TrainingJobArn": record.data["arn"]}

    def describe(self, request: dict, region: str) -> dict:
        return description(self.jobs.find(request["TrainingJobName"], region))

    def stop(self, request: dict, region: str) -> dict:
        self.jobs.stop(request["TrainingJobName"], region)
        return {}

    def delete(self, request: dict, region: str) -> dict:
        self.jobs.delete(request["TrainingJobName"], region)
        return {}

    def list(self, request: dict, region: str) -> dict:
        # Nothing stays warm here: a question for warm pools finds none.
        records = [] if "WarmPoolStatusEquals" in request else self.jobs.all(region)
        return listing.page(records, request, "TrainingJobSummaries", _summary)

    def search(self, request: dict, region: str) -> dict:
        if request["Resource"] != "TrainingJob":
            raise validation(
                f"Search for {request['Resource']}: the emulator finds training jobs only."
            )
        if request.get("SortBy", "CreationTime") not in SORTED:
            raise validation(f"SortBy {request['SortBy']}: it may be {', '.join(SORTED)}.")
        expression = request.get("SearchExpression", {})
        every = self.jobs.all(region)
        records = [record for record in every if search.matches(_properties(record), expression)]
        how = request | {"SortBy": SORTED[request.get("SortBy", "CreationTime")]}
        return listing.page(records, how, "Results", _search_row)


def _check(request: dict, isolation: str) -> None:
    """What AWS refuses and no schema states."""
    resources = request.get("ResourceConfig") or {}
    if "InstanceType" not in resources or "InstanceCount" not in resources:
        raise validation(
            "ResourceConfig needs InstanceType and InstanceCount. (Instance groups exist on AWS; "
            "the emulator has one group of equal instances.)"
        )
    if resources["InstanceCount"] < 1:  # JobManager knows how many there may be
        raise validation(f"InstanceCount is {resources['InstanceCount']}: a job has at least one.")
    algorithm = request.get("AlgorithmSpecification") or {}
    if not algorithm.get("TrainingImage"):
        raise validation("AlgorithmSpecification needs TrainingImage.")
    for name in ("RoleArn", "OutputDataConfig"):
        if not request.get(name):
            raise validation(f"CreateTrainingJob needs {name}.")
    if algorithm.get("ContainerEntrypoint"):
        _check_own_command(isolation)
    else:
        _check_script_mode(request.get("HyperParameters", {}), algorithm)


def _check_offered(request: dict) -> None:
    """Refuse what would otherwise be ignored silently."""
    for member, instead in NOT_OFFERED.items():
        if request.get(member):
            raise validation(f"{member}: the emulator does not offer that; {instead}.")
    if request.get("DebugHookConfig", {}).get("CollectionConfigurations"):
        raise validation(
            "DebugHookConfig has CollectionConfigurations, and nothing here saves tensors: write "
            "what you want to see with TensorBoard (TensorBoardOutputConfig)."
        )


def _check_own_command(isolation: str) -> None:
    if isolation != NAMESPACES:
        raise validation(
            "AlgorithmSpecification has a ContainerEntrypoint. Such a command finds its files "
            "under /opt/ml, which instances have of their own only where Linux namespaces can "
            "be made; `local-sagemaker status` says why they cannot be here."
        )


def _check_script_mode(hyperparameters: dict, algorithm: dict) -> None:
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


def description(record: JobRecord) -> dict:
    """DescribeTrainingJob's answer."""
    with record.lock:  # status and transitions change together
        return _description(record)


def _description(record: JobRecord) -> dict:
    data, request = record.data, record.request
    known = operation("DescribeTrainingJob").output_shape.members
    answer = {name: value for name, value in request.items() if name in known}
    answer |= {
        "TrainingJobArn": data["arn"],
        "TrainingJobStatus": data["status"],
        "SecondaryStatus": data["transitions"][-1]["Status"],
        "SecondaryStatusTransitions": data["transitions"],
        "CreationTime": data["created"],
        "LastModifiedTime": data["modified"],
        "ModelArtifacts": {"S3ModelArtifacts": data.get("artifacts") or ""},
        "FinalMetricDataList": [
            {"MetricName": name, "Value": value, "Timestamp": at}
            for name, (value, at) in data["metrics"].items()
        ],
        "ProfilingStatus": "Disabled",
    }
    # Filled in as AWS does; the SDK's `attach` relies on it.
    answer["OutputDataConfig"] = OUTPUT_DEFAULTS | request["OutputDataConfig"]
    answer["StoppingCondition"] = STOPPING_DEFAULTS | request.get("StoppingCondition", {})
    answer["ResourceConfig"] = {"VolumeSizeInGB": 0} | request["ResourceConfig"]
    answer.setdefault("EnableNetworkIsolation", False)
    answer.setdefault("EnableInterContainerTrafficEncryption", False)
    answer.setdefault("EnableManagedSpotTraining", False)
    if not data.get("artifacts"):
        del answer["ModelArtifacts"]
    if "reason" in data:
        answer["FailureReason"] = data["reason"]
    if "started" in data:
        answer["TrainingStartTime"] = data["started"]
        if "ended" in data:
            spent = data.get("seconds", data["ended"] - data["started"])
            seconds = max(1, round(spent))
            answer["TrainingEndTime"] = data["ended"]
            answer["TrainingTimeInSeconds"] = answer["BillableTimeInSeconds"] = seconds
    return answer


def _properties(record: JobRecord) -> dict:
    """What a search may ask of a job."""
    return description(record) | {
        "Tags": {tag["Key"]: tag["Value"] for tag in record.data["tags"]},
        "Metrics": {name: value for name, (value, _) in record.data["metrics"].items()},
    }


def _search_row(record: JobRecord) -> dict:
    """A job as Search gives it: its description, with its tags."""
    shape = operation("Search").output_shape.members["Results"].member.members["TrainingJob"]
    fields = description(record) | {"Tags": record.data["tags"]}
    return {"TrainingJob": {name: fields[name] for name in fields if name in shape.members}}


def _summary(record: JobRecord) -> dict:
    data = record.data
    times = {"TrainingEndTime": data["ended"]} if "ended" in data else {}
    return times | {
        "TrainingJobName": record.name,
        "TrainingJobArn": data["arn"],
        "CreationTime": data["created"],
        "LastModifiedTime": data["modified"],
        "TrainingJobStatus": data["status"],
        "SecondaryStatus": data["transitions"][-1]["Status"],
    }
