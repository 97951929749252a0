"""pytest fixtures for code that calls SageMaker: an emulator of the test run's own, and jobs on it.

pytest loads them wherever this package is installed:

    def test_two_instances_train_one_model(run_training_job):
        job = run_training_job(
            "my_code/train.py", distribution={"torch_distributed": {"enabled": True}}
        )
        assert job.status == "Completed", job.failure_reason

`sagemaker_emulator` starts when a test first asks for it, one for each worker of pytest-xdist.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import local_sagemaker

BUCKET = "lessons-data"
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/learner"
FINAL = ("Completed", "Failed", "Stopped")
FRAMEWORK_VERSIONS = {"tensorflow": "2.12", "pytorch": "2.2.0"}
ANY_IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"  # never pulled
NEEDS_SDK_2 = (
    "sagemaker_session and run_training_job need version 2 of the SageMaker SDK: pip install "
    "'sagemaker<3'. With version 3, start a ModelTrainer and call sagemaker_emulator.wait."
)
# Jobs that are still running when an emulator stops have this long to end.
STOP_QUICKLY = ["--grace", "3"]


@dataclasses.dataclass
class TrainingJob:
    """A job that has ended: its description and its log, host -> lines."""

    name: str
    description: dict
    log: dict[str, list[str]]

    @property
    def status(self) -> str:
        return self.description["TrainingJobStatus"]

    @property
    def failure_reason(self) -> str | None:
        return self.description.get("FailureReason")

    def lines(self, start: str = "") -> list[str]:
        """What the script printed after `start`, on every host, without mpirun's tags."""
        texts = [line.split("<stdout>: ")[-1] for lines in self.log.values() for line in lines]
        return [text.removeprefix(start).strip() for text in texts if text.startswith(start)]


class Emulator:
    """A running emulator, and clients for it. env: the variables that point AWS clients there."""

    def __init__(self, state: Path, options: list[str] = STOP_QUICKLY) -> None:
        self.state, self.options = state, options
        self.up()

    def up(self, port: int = 0) -> None:
        """Start it, on a free port by default."""
        self.use(local_sagemaker.start(self.state, port, self.options))

    def use(self, running: local_sagemaker.Running) -> None:
        """Send clients to an emulator that somebody has started with this state."""
        self.running = running
        self.env = local_sagemaker.environment(self.state, self.running.port)
        from local_sagemaker.core.aws import LocalAws
        from local_sagemaker.credentials import load

        self.aws = LocalAws(self.running.port, load(self.state))

    def down(self) -> None:
        local_sagemaker.stop(self.state)

    @property
    def url(self) -> str:
        return self.running.url

    def client(self, service: str, region: str | None = None) -> Any:
        """A boto3 client."""
        return self.aws.client(service, region or self.env["AWS_DEFAULT_REGION"])

    def put(self, key: str, body: bytes | str) -> str:
        """Store an object in the bucket of the tests; its URI."""
        body = body.encode() if isinstance(body, str) else body
        self.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
        return f"s3://{BUCKET}/{key}"

    def get(self, uri: str) -> bytes:
        """The content of an object."""
        bucket, key = uri.removeprefix("s3://").split("/", 1)
        return self.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()

    def wait(self, name: str, seconds: float = 120) -> TrainingJob:
        """Wait for a job's end. Fails the test after `seconds`."""
        api, deadline = self.client("sagemaker"), time.monotonic() + seconds
        while True:
            description = api.describe_training_job(TrainingJobName=name)
            if description["TrainingJobStatus"] in FINAL:
                return TrainingJob(name, description, self.log(name))
            assert time.monotonic() < deadline, f"{name}: {description['SecondaryStatus']}"
            time.sleep(0.25)

    def log(self, name: str) -> dict[str, list[str]]:
        """The lines of a job's log so far, host -> lines."""
        by_host: dict[str, list[str]] = {}
        for host, line in local_sagemaker.JobEvents(self.client("logs"), name).new():
            by_host.setdefault(host, []).append(line)
        return by_host


@contextlib.contextmanager
def emulator(state: Path, options: list[str] = STOP_QUICKLY) -> Iterator[Emulator]:
    """An emulator that this process, and those that it starts, find as theirs; ended at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(state))
        try:
            yield Emulator(state, options)
        finally:
            local_sagemaker.stop(state)


def sdk_session(emulator: Emulator, patch: pytest.MonkeyPatch) -> Any:
    """Set the variables of `local-sagemaker env`; return the Session of the unmodified SDK."""
    for name, value in emulator.env.items():
        patch.setenv(name, value)
    try:
        from sagemaker import Session
    except ImportError:  # version 3, or none
        pytest.fail(NEEDS_SDK_2, pytrace=False)

    # Its 30 seconds between two looks at an endpoint are for one that takes minutes.
    quick = functools.partialmethod(Session.wait_for_endpoint, poll=1)
    patch.setattr(Session, "wait_for_endpoint", quick)
    # The SDK checks the schema of its settings twenty times for an estimator.
    patch.setattr("sagemaker.utils.validate_sagemaker_config", lambda defaults: None)
    return Session(default_bucket=BUCKET)


def estimator(session: Any, script: str | Path, framework: str = "pytorch", **options: Any) -> Any:
    """The SDK's estimator for a script, on two instances. options: other arguments for it."""
    from sagemaker.pytorch import PyTorch
    from sagemaker.tensorflow import TensorFlow

    defaults = {
        "entry_point": Path(script).name,
        "source_dir": str(Path(script).parent),
        "role": ROLE,
        "instance_count": 2,
        "instance_type": "ml.m5.xlarge",
        "sagemaker_session": session,
        "py_version": "py310",
        "framework_version": FRAMEWORK_VERSIONS[framework],
    }
    return {"pytorch": PyTorch, "tensorflow": TensorFlow}[framework](**(defaults | options))


def start(estimator: Any, inputs: object = None) -> str:
    """Begin a job; its name."""
    estimator.fit(inputs, wait=False)
    return estimator.latest_training_job.name


@pytest.fixture(scope="session")
def sagemaker_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An `Emulator` on a free port, with an empty state directory and a bucket."""
    with emulator(tmp_path_factory.mktemp("emulator")) as running:
        running.client("s3").create_bucket(Bucket=BUCKET)
        yield running


@pytest.fixture
def sagemaker_session(sagemaker_emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A Session of the unmodified SDK 2; meanwhile the AWS variables point to the emulator."""
    return sdk_session(sagemaker_emulator, monkeypatch)


@pytest.fixture(scope="session")
def run_training_job(sagemaker_emulator: Emulator) -> Callable[..., TrainingJob]:
    """A function: run a script as a job to its end; the `TrainingJob`, whatever its status.

    script: its folder is the source_dir. inputs: as for `fit`. options: arguments of the SDK's
    estimator, such as distribution, hyperparameters, environment.
    """

    def run(
        script: str | Path,
        instances: int = 2,
        *,
        framework: str = "pytorch",
        inputs: object = None,
        seconds: float = 300,
        **options: Any,
    ) -> TrainingJob:
        options = {"instance_count": instances} | options
        if framework == "pytorch":  # else the SDK asks for GPUs where torchrun is to start ranks
            options = {"image_uri": ANY_IMAGE} | options
        with pytest.MonkeyPatch.context() as patch:
            session = sdk_session(sagemaker_emulator, patch)
            name = start(estimator(session, script, framework, **options), inputs)
        return sagemaker_emulator.wait(name, seconds)

    return run


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the emulators of this run that an interrupt has left, of its workers too."""
    folder = getattr(getattr(config, "_tmp_path_factory", None), "_basetemp", None)
    if "PYTEST_XDIST_WORKER" in os.environ or folder is None:
        return
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if "local_sagemaker" in words and any(word.startswith(f"{folder}/") for word in words):
                process.terminate()
