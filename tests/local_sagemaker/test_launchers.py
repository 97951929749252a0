"""Each launcher, two instances, an unmodified SDK: what the script sees is SageMaker's."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

import pytest

from endpoint_harness import BUCKET, estimator, start

ORACLE = json.loads((Path(__file__).parent / "oracle" / "tf_config.json").read_text())
HOSTS = ["algo-1", "algo-2"]
MPI = {"mpi": {"enabled": True, "processes_per_host": 2, "custom_mpi_options": "-x FOO=bar"}}


def seen(job) -> list[dict]:
    assert job.status == "Completed", job.description.get("FailureReason")
    return sorted((json.loads(line) for line in job.lines("SEEN")), key=lambda one: one["hostname"])


def oracle(kind: str, host: str) -> dict:
    for case in ORACLE["cases"]:
        if case["hosts"] == HOSTS and case["current_host"] == host:
            return case[kind]
    raise AssertionError(f"no recorded case for {host}")


@pytest.fixture(scope="module")
def jobs(endpoint):
    """The jobs of this module, started together: each test waits for its own."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in endpoint.env.items():
            patch.setenv(name, value)
        import sagemaker

        session = sagemaker.Session(default_bucket=BUCKET)
        metric = [{"Name": "loss", "Regex": "train_loss: ([0-9.]+)"}]
        plain = estimator(
            session, "show.py", hyperparameters={"epochs": 3}, metric_definitions=metric
        )
        names = {"plain": start(plain)}
        for key, kind in (
            ("parameter_server", "parameter_server"),
            ("multi_worker_mirrored", "multi_worker_mirrored_strategy"),
        ):
            names[key] = start(
                estimator(session, "show.py", distribution={kind: {"enabled": True}})
            )
        names["mpi"] = start(estimator(session, "show.py", distribution=MPI))
        names["torch_distributed"] = start(
            estimator(
                session,
                "ddp.py",
                kind="pytorch",
                distribution={"torch_distributed": {"enabled": True}},
                image_uri="registry.invalid/pytorch-training:2.2.0-cpu-py310",
                hyperparameters={"backend": "gloo"},
            )
        )
        names["smddp"] = start(
            estimator(
                session,
                "ddp.py",
                kind="pytorch",
                instance_type="ml.m5.xlarge",
                distribution={"smdistributed": {"dataparallel": {"enabled": True}}},
                hyperparameters={"backend": "smddp"},
            )
        )
    ended = {}

    def wait(key: str):
        if key not in ended:
            ended[key] = endpoint.wait(names[key], seconds=240)
        return ended[key]

    return wait


def test_plain_every_host_runs_the_script(jobs):
    found = seen(jobs("plain"))
    assert [one["hostname"] for one in found] == HOSTS
    assert [one["SM_CURRENT_HOST"] for one in found] == HOSTS
    for one in found:
        assert json.loads(one["SM_HOSTS"]) == HOSTS
        assert one["SM_CHANNEL_TRAINING"] == "/opt/ml/input/data/training"
        assert one["SM_MODEL_DIR"] == "/opt/ml/model"
        assert one["SM_OUTPUT_DATA_DIR"] == "/opt/ml/output/data"
        assert one["SM_NETWORK_INTERFACE_NAME"] == "eth0"
        assert one["TF_CONFIG"] is None
        assert one["arguments"][:2] == ["--epochs", "3"]
        assert one["channel"] == [f"part-{number}.txt" for number in range(4)]


def test_plain_says_that_nothing_synchronises(jobs):
    notes = jobs("plain").lines("[local]")
    assert any("nothing synchronises them" in line for line in notes)


def test_model_output_metrics_and_log_streams(jobs, endpoint):
    job = jobs("plain")
    uri = job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri == f"s3://{BUCKET}/{job.name}/output/model.tar.gz"
    with tarfile.open(fileobj=io.BytesIO(endpoint.get(uri))) as tar:
        assert sorted(tar.getnames()) == ["weights-algo-1.txt", "weights-algo-2.txt"]
    output = endpoint.get(uri.replace("model.tar.gz", "output.tar.gz"))
    with tarfile.open(fileobj=io.BytesIO(output)) as tar:
        assert tar.getnames() == ["table.csv"]
    metrics = job.description["FinalMetricDataList"]
    assert [one["MetricName"] for one in metrics] == ["loss"]
    assert metrics[0]["Value"] in (0.5, 0.25)
    assert sorted(job.log) == HOSTS


def test_metrics_reach_cloudwatch(jobs, endpoint):
    job = jobs("plain")
    found = endpoint.client("cloudwatch").list_metrics(Namespace="/aws/sagemaker/TrainingJobs")
    wanted = {"Name": "TrainingJobName", "Value": job.name}
    assert any(wanted in one["Dimensions"] for one in found["Metrics"])


def test_transitions_and_times(jobs):
    told = jobs("plain").description
    steps = [one["Status"] for one in told["SecondaryStatusTransitions"]]
    assert steps == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    assert told["CreationTime"] <= told["TrainingStartTime"] <= told["TrainingEndTime"]
    assert told["BillableTimeInSeconds"] >= 1


@pytest.mark.parametrize("kind", ["parameter_server", "multi_worker_mirrored"])
def test_tf_config_is_the_toolkits(jobs, kind):
    found = seen(jobs(kind))
    assert [json.loads(one["TF_CONFIG"]) for one in found] == [oracle(kind, h) for h in HOSTS]


def test_mpi_ranks_and_local_ranks(jobs):
    found = seen(jobs("mpi"))
    assert sorted(one["rank"] for one in found) == [0, 1, 2, 3]
    assert {one["size"] for one in found} == {4}
    places = sorted((one["rank"], one["hostname"], one["local_rank"]) for one in found)
    assert places == [(0, "algo-1", 0), (1, "algo-1", 1), (2, "algo-2", 0), (3, "algo-2", 1)]
    assert {one["FOO"] for one in found} == {"bar"}


def test_torchrun(jobs):
    found = seen(jobs("torch_distributed"))
    assert [(one["rank"], one["hostname"]) for one in found] == [(0, "algo-1"), (1, "algo-2")]
    assert {tuple(one["total"]) for one in found} == {(3.0, 3.0)}


def test_smddp_has_a_stand_in_that_says_so(jobs):
    job = jobs("smddp")
    assert {tuple(one["total"]) for one in seen(job)} == {(3.0, 3.0)}
    assert any("SMDDP exists only on AWS" in line for line in job.lines("[local]"))


def test_a_torn_line_is_whole_in_the_log(endpoint, sdk):
    job = endpoint.wait(start(estimator(sdk, "torn.py", instance_count=1)))
    assert job.lines("one") == ["two three"]
