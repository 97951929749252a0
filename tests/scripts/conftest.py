"""The fixtures of these tests; what else they share is in script_harness."""

import pytest
from script_harness import TRAIN, Run, digits, run, ten_steps

__all__ = ["digits", "run", "ten_steps"]


@pytest.fixture(scope="module")
def job_of(digits, tmp_path_factory, request):
    """A function: run a file of scripts/train as a job; what it printed.

    On two instances with a launcher of `distribution=`, on one without.
    """
    pytest.importorskip("sagemaker", reason="`make test-matrix` has the frameworks alone")
    from endpoint_harness import BUCKET, Endpoint, estimator, sdk_session, start

    endpoint = Endpoint(tmp_path_factory.mktemp("jobs") / "state")
    request.addfinalizer(endpoint.down)
    endpoint.client("s3").create_bucket(Bucket=BUCKET)
    for path in digits.glob("*/part-*"):
        endpoint.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())

    def job_of(name: str, launcher: str | None, flags: list) -> Run:
        kind = {"kind": "pytorch", "image_uri": "registry.invalid/pytorch-training:2.2.0-cpu-py310"}
        many = (
            {"distribution": {launcher: {"enabled": True}}} if launcher else {"instance_count": 1}
        )
        with pytest.MonkeyPatch.context() as patch:
            one = estimator(
                sdk_session(endpoint, patch),
                name,
                source_dir=str(TRAIN),
                **many,
                hyperparameters={
                    flag.removeprefix("--"): value
                    for flag, value in zip(flags[::2], flags[1::2], strict=True)
                },
                **(kind if "torch" in name else {}),
            )
            channels = {
                channel: f"s3://{BUCKET}/digits/{channel}" for channel in ("training", "test")
            }
            job = endpoint.wait(start(one, channels), seconds=420)
        assert job.status == "Completed", job.description.get("FailureReason")
        records = [line for line in job.lines("") if line.startswith('{"event"')]
        return Run(0, "\n".join(records), "")

    return job_of
