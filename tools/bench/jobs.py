"""Jobs on an emulator that a benchmark starts for itself, and that ends with it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest

import local_sagemaker
from local_sagemaker import pytest_plugin


class Jobs:
    """Jobs of one emulator. session: the SDK's, which points there."""

    def __init__(self, emulator: pytest_plugin.Emulator, session: Any) -> None:
        self.emulator, self.session = emulator, session

    def run(
        self,
        script: Path,
        *,
        instances: int,
        processes: int,
        links: str,
        also: Path | None = None,
        **parameters,
    ) -> list[str]:
        """Run a job to its end; its log's lines, host by host.

        processes: started by mpirun on each instance. links: a bandwidth such as "200mbit". also: a
        file that is put beside the script.

        Raises RuntimeError with the FailureReason if it failed.
        """
        estimator = pytest_plugin.estimator(
            self.session,
            script,
            "tensorflow",
            instance_count=instances,
            hyperparameters=parameters,
            dependencies=[str(also)] if also else [],
            distribution={"mpi": {"enabled": True, "processes_per_host": processes}},
            environment={"LOCAL_SAGEMAKER_BANDWIDTH": links},
        )
        job = self.emulator.wait(pytest_plugin.start(estimator), 900)
        if job.status != "Completed":
            raise RuntimeError(f"{job.name}: {job.failure_reason}")
        return job.lines()


def link_words(mbit: float | None, latency_ms: float = 0) -> str:
    """The emulator's words for a bandwidth: "200mbit", "200mbit 1ms"; None: unlimited."""
    rate = "wide" if mbit is None else f"{mbit:g}mbit"
    return f"{rate} {latency_ms:g}ms" if latency_ms else rate


def can_delay() -> bool:
    """Whether this machine's kernel can delay packets."""
    return local_sagemaker.shaping_unavailable_reason(latency=True) is None


@contextlib.contextmanager
def emulator() -> Iterator[Jobs]:
    """An emulator of its own, which is gone afterwards."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        pytest_plugin.emulator(Path(folder) / "state") as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(boto3, "DEFAULT_SESSION", None)  # it has an earlier emulator's keys
        running.client("s3").create_bucket(Bucket=pytest_plugin.BUCKET)
        yield Jobs(running, pytest_plugin.sdk_session(running, patch))
