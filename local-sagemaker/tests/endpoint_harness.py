"""What the tests of the endpoint share: an endpoint of their own, estimators, requests."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from pathlib import Path

import boto3

from local_sagemaker import credentials, daemon
from local_sagemaker.core.aws import LocalAws

SCRIPTS = Path(__file__).parent / "scripts"
BUCKET = "lessons-data"
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/learner"
FINAL = ("Completed", "Failed", "Stopped")
IMAGE = "registry.invalid/tensorflow-training:2.18-cpu-py310"


@dataclasses.dataclass
class Job:
    """A job that has ended: its description and its log, host -> lines."""

    name: str
    description: dict
    log: dict[str, list[str]]

    @property
    def status(self) -> str:
        return self.description["TrainingJobStatus"]

    def lines(self, start: str) -> list[str]:
        """What the script printed after `start`, on every host, without mpirun's tags."""
        found = []
        for lines in self.log.values():
            for line in lines:
                text = line.split("<stdout>: ")[-1]
                if text.startswith(start):
                    found.append(text[len(start) :].strip())
        return found


class Endpoint:
    """A running endpoint and clients for it."""

    def __init__(self, state: Path, options: list[str] | None = None) -> None:
        self.state = state
        self.options = options or ["--grace", "3"]
        self.up()

    def up(self, port: int = 0) -> None:
        self.running = daemon.start(self.state, port, self.options)
        self.env = daemon.environment(self.state, self.running.port)

    def down(self) -> None:
        daemon.stop(self.state)

    def client(self, service: str, region: str | None = None):
        found = self.env
        keys = found["AWS_ACCESS_KEY_ID"], found["AWS_SECRET_ACCESS_KEY"]
        region = region or found["AWS_DEFAULT_REGION"]
        return _client(service, found["AWS_ENDPOINT_URL"], region, *keys)

    def aws(self) -> LocalAws:
        """The endpoint as its own client."""
        return LocalAws(self.running.port, credentials.of_state(self.state))

    def put(self, key: str, body: bytes | str) -> str:
        body = body.encode() if isinstance(body, str) else body
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        return f"s3://{BUCKET}/{key}"

    def get(self, uri: str) -> bytes:
        bucket, key = uri.removeprefix("s3://").split("/", 1)
        return self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()

    def wait(self, name: str, seconds: float = 120) -> Job:
        """Wait for a job's end. Fails the test after `seconds`."""
        api, deadline = self.client("sagemaker"), time.monotonic() + seconds
        while True:
            found = api.describe_training_job(TrainingJobName=name)
            if found["TrainingJobStatus"] in FINAL:
                return Job(name, found, self.log(name))
            assert time.monotonic() < deadline, f"{name}: {found['SecondaryStatus']}"
            time.sleep(0.25)

    def log(self, name: str) -> dict[str, list[str]]:
        group, logs = "/aws/sagemaker/TrainingJobs", self.client("logs")
        try:
            streams = logs.describe_log_streams(
                logGroupName=group, logStreamNamePrefix=f"{name}/", orderBy="LogStreamName"
            )["logStreams"]
        except logs.exceptions.ResourceNotFoundException:  # the first job makes the group
            return {}
        found = {}
        for stream in streams:
            events = logs.get_log_events(
                logGroupName=group, logStreamName=stream["logStreamName"], startFromHead=True
            )["events"]
            host = stream["logStreamName"].split("/")[1].rpartition("-")[0]
            # A spot job that was interrupted has a stream for each time it was started.
            found.setdefault(host, []).extend(event["message"] for event in events)
        return found


@functools.cache
def _client(service: str, url: str, region: str, key: str, secret: str):
    """Each is made once: that takes a tenth of a second."""
    return boto3.client(
        service,
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
    )


def sdk_session(endpoint: Endpoint, monkeypatch):
    """Set the variables of `local-sagemaker env`; return the SDK's Session of them."""
    for name, value in endpoint.env.items():
        monkeypatch.setenv(name, value)
    import sagemaker

    # Its 30 seconds between two looks at an endpoint are for one that takes minutes.
    wait = sagemaker.Session.wait_for_endpoint
    quick = functools.partialmethod(wait, poll=1)
    monkeypatch.setattr(sagemaker.Session, "wait_for_endpoint", quick)
    # As workshop.session does. test_binding uses the SDK as it is.
    monkeypatch.setattr("sagemaker.utils.validate_sagemaker_config", lambda defaults: None)
    return sagemaker.Session(default_bucket=BUCKET)


def estimator(session, entry_point: str, kind: str = "tensorflow", **options):
    """An estimator of the unmodified SDK for a script of tests/scripts."""
    from sagemaker.pytorch import PyTorch
    from sagemaker.tensorflow import TensorFlow

    defaults = {
        "entry_point": entry_point,
        "source_dir": str(SCRIPTS),
        "role": ROLE,
        "instance_count": 2,
        "instance_type": "ml.m5.xlarge",
        "sagemaker_session": session,
        "py_version": "py310",
        "framework_version": "2.12" if kind == "tensorflow" else "2.2.0",
    }
    return (TensorFlow if kind == "tensorflow" else PyTorch)(**(defaults | options))


def start(estimator_, inputs: object = "default") -> str:
    """Begin a job; its name."""
    inputs = {"training": f"s3://{BUCKET}/data"} if inputs == "default" else inputs
    estimator_.fit(inputs, wait=False)
    return estimator_.latest_training_job.name


def request(name: str, **changes) -> dict:
    """A CreateTrainingJob request as the SDK would send it, for tests of the API itself."""
    body = {
        "TrainingJobName": name,
        "RoleArn": ROLE,
        "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out"},
        "ResourceConfig": {
            "InstanceCount": 1,
            "InstanceType": "ml.m5.xlarge",
            "VolumeSizeInGB": 1,
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
        "HyperParameters": {
            "sagemaker_program": '"hello.py"',
            "sagemaker_submit_directory": f'"s3://{BUCKET}/code/source.tar.gz"',
        },
    }
    return body | changes


def command_request(name: str, command: list[str], instances: int = 1, **changes) -> dict:
    """A request whose instances run `command` in the toolkit's place. It needs namespaces."""
    body = request(name, **changes)
    body.pop("HyperParameters")
    body["AlgorithmSpecification"] |= {
        "ContainerEntrypoint": command[:1],
        "ContainerArguments": command[1:],
    }
    body["ResourceConfig"]["InstanceCount"] = instances
    return body


def processes_with(text: str) -> list[str]:
    """Command lines and environments of living processes that contain `text`."""
    import psutil

    found = []
    for process in psutil.process_iter():
        try:
            if process.pid != os.getpid() and text in str((process.cmdline(), process.environ())):
                found.append(" ".join(process.cmdline()))
        except (psutil.Error, OSError):
            continue
    return found


def until_gone(name: str, seconds: float = 60) -> None:
    """Fail the test if processes of a job are still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while found := processes_with(name):
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
