"""Jobs on an emulator that a benchmark starts for itself, and that ends with it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import boto3
import pytest

from local_sagemaker import pytest_plugin

Run = Callable[..., list[str]]  # what `emulator` yields


@contextlib.contextmanager
def emulator() -> Iterator[Run]:
    """A function that runs a job to its end, on an emulator that is gone afterwards.

    run(script, instances=2, processes=1, links="200mbit", also=None, **hyperparameters) returns its
    log's lines, host by host. processes: started by mpirun on each instance. also: a file that is
    put beside the script. Raises RuntimeError with the FailureReason of a job that failed.
    """
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        pytest_plugin.emulator(Path(folder) / "state") as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(boto3, "DEFAULT_SESSION", None)  # it has an earlier emulator's keys
        running.client("s3").create_bucket(Bucket=pytest_plugin.BUCKET)
        session = pytest_plugin.sdk_session(running, patch)

        def run(
            script: Path,
            *,
            instances: int,
            processes: int,
            links: str,
            also: Path | None = None,
            **parameters,
        ) -> list[str]:
            estimator = pytest_plugin.estimator(
                session,
                script,
                "tensorflow",
                instance_count=instances,
                hyperparameters=parameters,
                dependencies=[str(also)] if also else [],
                distribution={"mpi": {"enabled": True, "processes_per_host": processes}},
                environment={"LOCAL_SAGEMAKER_BANDWIDTH": links},
            )
            job = running.wait(pytest_plugin.start(estimator), 900)
            if job.status != "Completed":
                raise RuntimeError(f"{job.name}: {job.failure_reason}")
            return job.lines()

        yield run
