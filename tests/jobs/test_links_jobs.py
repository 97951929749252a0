"""On narrow links, a job with the two-tier all-reduce trains the same model."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from data_prep import digits
from endpoint_harness import BUCKET, Endpoint, Job, estimator, sdk_session, start

DEMOS = Path(__file__).parent.parent.parent / "scripts" / "demos"
IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"
MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}
SETTINGS = {"hidden-units": 1024, "max-steps": 44, "log-every": 0}
# Two jobs; in make test lesson 07 runs them, and test_collectives.py counts the bytes of two_tier.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
NARROW = {"LOCAL_SAGEMAKER_LINKS": "200mbit"}


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    """An endpoint whose bucket holds the digits."""
    folder = tmp_path_factory.mktemp("links")
    one = Endpoint(folder / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    made = digits.prepare(folder / "digits", as_tfrecord=False, quiet=True)
    for path in Path(made).glob("*/part-*"):
        one.put(f"digits/{path.parent.name}/{path.name}", path.read_bytes())
    return one


@pytest.fixture(scope="module")
def jobs(endpoint):
    """The job of each all-reduce, on two instances of two ranks, when it has ended."""
    ended = {}
    with pytest.MonkeyPatch.context() as patch:
        session = sdk_session(endpoint, patch)
        for name in ("default", "two_tier"):
            one = estimator(
                session,
                "train_torch_links.py",
                kind="pytorch",
                source_dir=str(DEMOS),
                image_uri=IMAGE,
                distribution=MPI,
                environment=NARROW,
                hyperparameters=SETTINGS | {"all-reduce": name},
            )
            inputs = {key: f"s3://{BUCKET}/digits/{key}" for key in ("training", "test")}
            ended[name] = endpoint.wait(start(one, inputs), seconds=240)
            assert ended[name].status == "Completed", ended[name].description
    return ended


def records(job: Job, event: str) -> list[dict]:
    found = [json.loads(line) for line in job.lines("") if line.startswith('{"event"')]
    return [one for one in found if one["event"] == event]


def weights(endpoint, job: Job) -> dict:
    """The trained weights, from the model.tar.gz that the job left."""
    torch = pytest.importorskip("torch")
    packed = endpoint.get(job.description["ModelArtifacts"]["S3ModelArtifacts"])
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        saved = archive.extractfile("model.pt").read()
    return torch.load(io.BytesIO(saved), weights_only=True)["state_dict"]


def test_the_loss_curves_are_one(jobs):
    curves = [[one["train_loss"] for one in records(jobs[name], "epoch")] for name in jobs]
    assert len(curves[0]) == 2
    assert curves[0][1] < curves[0][0]
    assert curves[1] == pytest.approx(curves[0], abs=2e-5)  # they are printed to 1e-6


def test_the_weights_are_the_same(endpoint, jobs):
    for name in jobs:
        found = records(jobs[name], "weights")
        assert sorted(one["rank"] for one in found) == [0, 1, 2, 3]
        assert len({one["weights_sha256"] for one in found}) == 1
    default, two_tier = (weights(endpoint, job) for job in jobs.values())
    for name, value in default.items():
        assert float((value - two_tier[name]).abs().max()) <= 1e-5, name
