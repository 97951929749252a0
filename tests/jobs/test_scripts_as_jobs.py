"""The workshop's scripts as SageMaker jobs on two instances: they learn, and they agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from data_prep import digits
from endpoint_harness import BUCKET, Endpoint, Job, estimator, start

SCRIPTS = Path(__file__).parent.parent.parent / "scripts"
ENOUGH = 0.96
TORCH_IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    """An endpoint whose bucket holds the digits."""
    folder = tmp_path_factory.mktemp("jobs")
    one = Endpoint(folder / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    for form, as_tfrecord in (("digits", False), ("tfrecord", True)):
        made = digits.prepare(folder / form, as_tfrecord=as_tfrecord, quiet=True)
        for path in Path(made).glob("*/part-*"):
            one.put(f"{form}/{path.parent.name}/{path.name}", path.read_bytes())
    return one


@pytest.fixture
def run(endpoint, monkeypatch):
    """A function that runs a script of scripts/ as a job and returns it."""
    for name, value in endpoint.env.items():
        monkeypatch.setenv(name, value)
    import sagemaker

    session = sagemaker.Session(default_bucket=BUCKET)

    def go(entry_point: str, form: str = "digits", **options) -> Job:
        one = estimator(session, entry_point, source_dir=str(SCRIPTS), **options)
        inputs = {name: f"s3://{BUCKET}/{form}/{name}" for name in ("training", "test")}
        job = endpoint.wait(start(one, inputs), seconds=240)
        assert job.status == "Completed", job.description.get("FailureReason")
        return job

    return go


def records(job: Job, event: str) -> list[dict]:
    found = [json.loads(line) for line in job.lines("") if line.startswith('{"event"')]
    return [one for one in found if one["event"] == event]


def check(job: Job, ranks: int) -> None:
    epochs = records(job, "epoch")
    assert epochs[-1]["train_loss"] < epochs[0]["train_loss"] / 2
    assert epochs[-1]["test_accuracy"] >= ENOUGH
    weights = records(job, "weights")
    assert sorted(one["rank"] for one in weights) == list(range(ranks))
    assert len({one["weights_sha256"] for one in weights}) == 1
    assert job.description["ModelArtifacts"]["S3ModelArtifacts"].endswith("model.tar.gz")


def test_single_process(run):
    check(run("train_tf.py", instance_count=1), ranks=1)


@pytest.mark.horovod
def test_horovod_on_two_instances(run):
    pytest.importorskip("horovod", reason="Horovod is not installed; `make doctor` says why")
    mpi = {"mpi": {"enabled": True, "processes_per_host": 2}}
    job = run("train_tf_horovod.py", distribution=mpi)
    assert records(job, "start")[0]["world_size"] == 4
    check(job, ranks=4)


def test_ddp_on_two_instances(run):
    options = {"kind": "pytorch", "image_uri": TORCH_IMAGE}
    job = run(
        "train_torch_ddp.py", distribution={"torch_distributed": {"enabled": True}}, **options
    )
    assert records(job, "start")[0]["world_size"] == 2
    check(job, ranks=2)


def test_parameter_server_on_two_instances(run):
    job = run("train_tf_ps.py", distribution={"parameter_server": {"enabled": True}})
    epochs = records(job, "epoch")
    assert epochs[-1]["test_accuracy"] >= ENOUGH
    assert epochs[-1]["train_loss"] < epochs[0]["train_loss"] / 2


@pytest.mark.horovod
@pytest.mark.parametrize(
    "library, distribution",
    [
        ("horovod", {"mpi": {"enabled": True, "processes_per_host": 1}}),
        ("smddp", {"smdistributed": {"dataparallel": {"enabled": True}}}),
    ],
)
def test_one_script_two_libraries(run, library, distribution):
    """The distribution and one hyperparameter are the whole switch."""
    pytest.importorskip("horovod", reason="Horovod is not installed; `make doctor` says why")
    settings = {"library": library, "learning-rate": 0.1, "epochs": 15, "warmup-steps": 20}
    job = run(
        "train_tf_fit.py",
        form="tfrecord",
        framework_version="2.11.0",  # the last that has both
        py_version="py39",
        distribution=distribution,
        hyperparameters=settings,
    )
    world_size = records(job, "start")[0]["world_size"]
    assert world_size >= 2
    check(job, ranks=world_size)
