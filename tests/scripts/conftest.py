"""The fixtures of these tests; what else they share is in script_harness."""

import pytest
from script_harness import TRAIN, Run, digits, run, ten_steps

from local_sagemaker.pytest_plugin import BUCKET

__all__ = ["digits", "run", "ten_steps"]


@pytest.fixture
def job_of(digits, request):
    """A function: run a file of scripts/train as a job; what it printed.

    On two instances with a launcher of `distribution=`, on one without.
    """
    pytest.importorskip("sagemaker", reason="`make test-matrix` has the frameworks alone")
    emulator = request.getfixturevalue("sagemaker_emulator")
    run_training_job = request.getfixturevalue("run_training_job")
    for path in digits.glob("*/part-*"):
        emulator.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    inputs = {channel: f"s3://{BUCKET}/digits/{channel}" for channel in ("training", "test")}

    def job_of(name: str, launcher: str | None, flags: list) -> Run:
        options = {"distribution": {launcher: {"enabled": True}}} if launcher else {"instances": 1}
        keys = [flag.removeprefix("--") for flag in flags[::2]]
        job = run_training_job(
            TRAIN / name,
            framework="pytorch" if "torch" in name else "tensorflow",
            inputs=inputs,
            seconds=420,
            hyperparameters=dict(zip(keys, flags[1::2], strict=True)),
            **options,
        )
        assert job.status == "Completed", job.failure_reason
        records = [line for line in job.lines() if line.startswith('{"event"')]
        return Run(0, "\n".join(records), "")

    return job_of
