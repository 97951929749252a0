"""Each launcher, two instances, an unmodified SDK: what the script sees is SageMaker's.

Variables, arguments and command are compared with what AWS's unmodified toolkit makes of the same
request. Its input files are written as AWS documents them (docs.aws.amazon.com/sagemaker/latest/
dg/your-algorithms-training-algo-running-container.html), from DescribeTrainingJob's answer.
Jobs with TF_CONFIG are those of test_isolation.py and of lessons 03 and 05; one with SMDDP's
stand-in is that of lesson 07.
"""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from emulator_harness import captured, estimator, records, start, unpacked

from local_sagemaker.container import framework
from local_sagemaker.pytest_plugin import BUCKET, sdk_session

TOOLKIT_SAYS = Path(__file__).parents[1] / "oracle" / "toolkit_says.py"
ORACLE = json.loads((Path(__file__).parents[1] / "oracle" / "tf_config.json").read_text())
HOSTS = ["algo-1", "algo-2"]
MPI = {"mpi": {"enabled": True, "processes_per_host": 2, "custom_mpi_options": "-x FOO=bar"}}


def seen(job) -> list[dict]:
    return sorted(records(job, "SEEN"), key=lambda rank: rank["hostname"])


@pytest.fixture(scope="module")
def jobs(emulator):
    """The jobs of this module, started together: each test waits for its own."""
    with pytest.MonkeyPatch.context() as patch:
        session = sdk_session(emulator, patch)
        metric = [{"Name": "loss", "Regex": "train_loss: ([0-9.]+)"}]
        plain = estimator(
            session,
            "show.py",
            distribution={"horovod": {"enabled": True}},  # a key that SageMaker does not know
            hyperparameters={"epochs": 3},
            metric_definitions=metric,
            environment={"FOO": "bar"},
            tags=[{"Key": "lesson", "Value": "05"}],
            checkpoint_s3_uri=f"s3://{BUCKET}/checkpoints",
        )
        names = {"plain": start(plain)}
        body = {"epochs": 3, "learning-rate": 0.25, "name": "a b", "verbose": True}
        mpi = estimator(session, "show.py", distribution=MPI, hyperparameters=body)
        names["mpi"] = start(mpi)
        names["torch_distributed"] = start(
            estimator(
                session,
                "show.py",
                kind="pytorch",
                instance_type="ml.g4dn.12xlarge",  # a process for each of its 4 GPUs
                distribution={"torch_distributed": {"enabled": True}},
            )
        )
    ended = {}

    def wait(key: str):
        if key not in ended:
            ended[key] = emulator.wait(names[key], seconds=240)
        return ended[key]

    return wait


def test_plain_every_host_runs_the_script(jobs):
    result = seen(jobs("plain"))
    assert [rank["hostname"] for rank in result] == HOSTS
    assert [rank["SM_CURRENT_HOST"] for rank in result] == HOSTS
    for rank in result:
        assert json.loads(rank["SM_HOSTS"]) == HOSTS
        assert rank["SM_CHANNEL_TRAINING"] == "/opt/ml/input/data/training"
        assert rank["SM_MODEL_DIR"] == "/opt/ml/model"
        assert rank["SM_OUTPUT_DATA_DIR"] == "/opt/ml/output/data"
        assert rank["SM_NETWORK_INTERFACE_NAME"] == "eth0"
        assert rank["TF_CONFIG"] is None
        assert rank["arguments"][:2] == ["--epochs", "3"]
        assert rank["channel"] == [f"part-{number}.txt" for number in range(4)]


def test_what_the_log_has(jobs):
    """An unknown launcher is ignored, as on AWS, and said; a line written in pieces is whole."""
    job = jobs("plain")
    (note,) = [line for line in job.lines("[local]") if "no launcher that SageMaker knows" in line]
    assert "nothing synchronises them" in note
    assert job.lines("one") == ["two three"] * 2


def test_model_output_metrics_and_log_streams(jobs, emulator):
    job = jobs("plain")
    uri = job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri == f"s3://{BUCKET}/{job.name}/output/model.tar.gz"
    assert set(unpacked(emulator, uri)) == {"weights-algo-1.txt", "weights-algo-2.txt"}
    assert set(unpacked(emulator, uri.replace("model", "output"))) == {"table.csv"}
    metrics = job.description["FinalMetricDataList"]
    assert [metric["MetricName"] for metric in metrics] == ["loss"]
    assert metrics[0]["Value"] in (0.5, 0.25)
    assert sorted(job.log) == HOSTS
    rows = emulator.client("cloudwatch").list_metrics(Namespace="/aws/sagemaker/TrainingJobs")
    expected = {"Name": "TrainingJobName", "Value": job.name}
    assert any(expected in metric["Dimensions"] for metric in rows["Metrics"])


@pytest.mark.parametrize("case", ORACLE["cases"])
def test_tf_config_is_the_toolkits(monkeypatch, case):
    variables = {}
    monkeypatch.setattr(framework, "_script", lambda env, extra: variables.update(extra))
    env = SimpleNamespace(hosts=case["hosts"], current_host=case["current_host"])
    framework._multi_worker_mirrored(env)
    assert json.loads(variables["TF_CONFIG"]) == case["multi_worker_mirrored"]
    if len(env.hosts) > 1:
        config = framework.parameter_server_config(env.hosts, env.current_host)
        assert config == case["parameter_server"]


def test_mpi_ranks_and_local_ranks(jobs):
    result = seen(jobs("mpi"))
    assert sorted(rank["rank"] for rank in result) == [0, 1, 2, 3]
    assert {rank["size"] for rank in result} == {4}
    places = sorted((rank["rank"], rank["hostname"], rank["local_rank"]) for rank in result)
    assert places == [(0, "algo-1", 0), (1, "algo-1", 1), (2, "algo-2", 0), (3, "algo-2", 1)]
    assert {rank["FOO"] for rank in result} == {"bar"}


def test_torchrun(jobs):
    places = sorted(
        (rank["rank"], rank["hostname"], rank["local_rank"])
        for rank in seen(jobs("torch_distributed"))
    )
    assert places == [(4 * i + n, host, n) for i, host in enumerate(HOSTS) for n in range(4)]
    assert {rank["size"] for rank in seen(jobs("torch_distributed"))} == {8}


@pytest.fixture(scope="module")
def toolkit(jobs, tmp_path_factory):
    """The toolkit's answers for the first host, from files made as AWS makes them."""
    job = jobs("mpi")
    description, base = job.description, tmp_path_factory.mktemp("opt") / "ml"
    kind = description["ResourceConfig"]["InstanceType"]
    group = {"instance_group_name": "homogeneousCluster", "instance_type": kind, "hosts": HOSTS}
    files = {
        "hyperparameters": description["HyperParameters"],
        "resourceconfig": {
            "current_host": "algo-1",
            "current_instance_type": kind,
            "current_group_name": "homogeneousCluster",
            "hosts": HOSTS,
            "instance_groups": [group],
            "network_interface_name": "eth0",
        },
        "inputdataconfig": {
            "training": {
                "TrainingInputMode": "File",
                "S3DistributionType": "FullyReplicated",
                "RecordWrapperType": "None",
            }
        },
    }
    (base / "input" / "config").mkdir(parents=True)
    for name, content in files.items():
        (base / "input" / "config" / f"{name}.json").write_text(json.dumps(content))
    env = {name: "local" for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    env |= {"PATH": os.environ["PATH"], "TRAINING_JOB_NAME": job.name}
    # The image says which framework module the toolkit calls; the emulator has its own.
    env["SAGEMAKER_TRAINING_MODULE"] = "local_sagemaker.container.framework:main"
    done = captured([sys.executable, TOOLKIT_SAYS, base], env=env, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_variables_arguments_and_command_are_the_toolkits(jobs, toolkit):
    job = jobs("mpi")
    log = job.log["algo-1"]
    lines = dict(line.split("=", 1) for line in log if line.startswith("SM_"))
    assert len(toolkit["variables"]) > 30
    for name, value in toolkit["variables"].items():
        assert lines[name] == value, name
    assert [rank["arguments"] for rank in seen(job)] == [toolkit["arguments"]] * 4
    # The log has the words of the command with spaces between them, unquoted.
    logged = [line for line in log if line.startswith("mpirun --host")]
    assert logged == [" ".join(toolkit["command"])]


def test_describe_tells_what_was_asked_for_and_when_it_was_done(emulator, jobs):
    description = jobs("plain").description
    assert description["Environment"] == {"FOO": "bar"}
    assert description["HyperParameters"]["epochs"] == "3"
    assert description["ResourceConfig"]["InstanceType"] == "ml.m5.xlarge"
    assert description["InputDataConfig"][0]["ChannelName"] == "training"
    assert description["CheckpointConfig"]["S3Uri"] == f"s3://{BUCKET}/checkpoints"
    assert description["StoppingCondition"]["MaxRuntimeInSeconds"] == 86400
    assert description["EnableManagedSpotTraining"] is False
    assert "Tags" not in description
    model = emulator.client("sagemaker").meta.service_model
    required = model.operation_model("DescribeTrainingJob").output_shape.required_members
    ended = {"TrainingStartTime", "TrainingEndTime", "ModelArtifacts", "FinalMetricDataList"}
    assert ended | set(required) <= set(description)
    steps = [transition["Status"] for transition in description["SecondaryStatusTransitions"]]
    assert steps == ["Starting", "Downloading", "Training", "Uploading", "Completed"]
    times = [description[name] for name in ("CreationTime", "TrainingStartTime", "TrainingEndTime")]
    assert times == sorted(times)
    assert description["BillableTimeInSeconds"] >= 1
