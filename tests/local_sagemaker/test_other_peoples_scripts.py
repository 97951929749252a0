"""Scripts and calls as others write them: each imitates what its docstring or comment names.

The jobs of all tests are started together, once: most of their time is Python's imports.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import time
import zipfile
from pathlib import Path

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, IMAGE, ROLE, estimator, request, sdk_session, start
from local_sagemaker.image.requirements import constraints
from local_sagemaker.jobs import failure, instance_types

FULL_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
CHECKPOINTS = f"s3://{BUCKET}/others/checkpoints"
ROWS = "0,5.1,3.5\n0,4.9,3.0\n1,7.0,3.2\n1,6.4,3.1\n"
PIN = next((one for one in constraints("") if one.startswith("torchvision")), None)
TORCHRUN = {"torch_distributed": {"enabled": True}}
MPI = {"mpi": {"enabled": True, "processes_per_host": 2}}


class Jobs:
    """The jobs, by what they imitate. remote: what a function of @remote returned, or its error."""

    def __init__(self, endpoint, names: dict[str, str]) -> None:
        self.endpoint, self.names, self.remote = endpoint, names, None

    def ended(self, name: str):
        job = self.endpoint.wait(self.names[name])
        assert job.status == "Completed", job.description.get("FailureReason")
        return job


@pytest.fixture(scope="module")
def jobs(endpoint, tmp_path_factory):
    import sagemaker
    from sagemaker.sklearn import SKLearn

    endpoint.put("others/train/iris.csv", ROWS)
    endpoint.put("others/foreign/foreign.tar.gz", _archive_of_another_user())
    endpoint.put("others/checkpoints/checkpoint-2/trainer_state.json", '{"global_step": 2}')
    with pytest.MonkeyPatch.context() as patch:
        sdk = sdk_session(endpoint, patch)

        def one(script: str, inputs: object = "default", **more) -> str:
            return start(estimator(sdk, script, **({"instance_count": 1} | more)), inputs)

        keras_3 = {"image_uri": "registry.invalid/tensorflow-training:2.18-cpu-py310"}
        torch = {"kind": "pytorch"}
        trees = SKLearn(
            entry_point="sklearn_script.py",
            source_dir=str(Path(__file__).parent / "scripts"),
            role=ROLE,
            instance_type="ml.m5.large",
            framework_version="1.2-1",
            sagemaker_session=sdk,
            hyperparameters={"max_leaf_nodes": 2},
        )
        words = {"do_train": True, "fp16": False, "learning_rate": "1e-3", "max_steps": 4}
        words |= {"model_name_or_path": "tiny", "output_dir": "/opt/ml/model", "seed": 7}
        words["label_names"] = ["no", "yes"]
        tensorboard = sagemaker.debugger.TensorBoardOutputConfig(f"s3://{BUCKET}/others/board")
        names = {
            "keras 2": one("keras_2_script.py", disable_output_compression=True),
            "keras 3": one("keras_3_script.py", framework_version=None, **keras_3),
            "mnist": one(
                "torch_mnist_script.py",
                {"training": f"s3://{BUCKET}/data"},
                instance_count=2,
                hyperparameters={"backend": "gloo", "epochs": 1},
                **torch,
            ),
            "torchrun": one(
                "torchrun_script.py",
                instance_count=2,
                instance_type="ml.g4dn.xlarge",  # the SDK wants GPUs for torchrun
                distribution=TORCHRUN,
                checkpoint_s3_uri=f"s3://{BUCKET}/others/snapshots",
                **torch,
            ),
            "trees": start(trees, {"train": f"s3://{BUCKET}/others/train"}),
            "trainer": one(
                "trainer_script.py", hyperparameters=words, checkpoint_s3_uri=CHECKPOINTS, **torch
            ),
            "shell": one("untar.sh", {"training": f"s3://{BUCKET}/others/foreign"}),
            "session": one(
                "session_script.py",
                model_dir=f"s3://{BUCKET}/others/model",
                tensorboard_output_config=tensorboard,
            ),
            "mpi4py": one("mpi4py_script.py", instance_count=2, distribution=MPI),
            "sts": one("asks_sts.py"),
        }
        if PIN:
            folder = str(_wants_torchvision(tmp_path_factory.mktemp("wants")))
            names["torchvision"] = one("script.py", source_dir=folder)
        found = Jobs(endpoint, names)
        asks = threading.Thread(target=_remotely, args=(found, sdk))
        asks.start()
        yield found
        asks.join(180)


def _remotely(found: Jobs, session) -> None:
    """As "Run your local code as a SageMaker training job" of AWS's documentation."""
    from sagemaker.remote_function import remote

    @remote(
        sagemaker_session=session,
        role=ROLE,
        image_uri=IMAGE,
        instance_type="ml.m5.large",
        s3_root_uri=f"s3://{BUCKET}/others/remote",
    )
    def divide(x, y):
        return x / y

    try:
        found.remote = divide(3, 2)
    except Exception as error:
        found.remote = error


def _archive_of_another_user() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        one = tarfile.TarInfo("foreign.txt")
        one.size, one.uid, one.gid = 5, 4711, 4711
        archive.addfile(one, io.BytesIO(b"hello"))
    return packed.getvalue()


def _wants_torchvision(folder: Path) -> Path:
    """A source_dir whose requirements name torchvision, and two builds of it: one that fits this
    machine's torch, and a newer one that would draw another torch."""
    _wheel(folder, "torchvision", PIN.partition("==")[2])
    _wheel(folder, "torchvision", "99.0", "torch==99.0")
    _wheel(folder, "torch", "99.0")
    (folder / "requirements.txt").write_text("--no-index\n--find-links .\ntorchvision\n")
    (folder / "script.py").write_text(
        "import importlib.metadata as found\n"
        "print('VERSIONS', found.version('torchvision'), found.version('torch'), flush=True)\n"
    )
    return folder


def _wheel(folder: Path, name: str, version: str, needs: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    wants = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wants}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(text)}\n")
    files[f"{info}/RECORD"] = "".join(lines) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)


def test_keras_2_where_the_image_has_it_and_a_model_without_compression(jobs):
    job = jobs.ended("keras 2")
    assert job.lines("RATE") == ["0.01"]
    uri = job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri.endswith(f"/{job.name}/output/model/")
    assert jobs.endpoint.get(f"{uri}weights.h5").startswith(b"\x89HDF")


def test_keras_3_where_the_image_has_it(jobs):
    assert jobs.ended("keras 3").lines("KERAS") == ["3 2"]


def test_a_script_that_joins_its_hosts_itself(jobs):
    assert jobs.ended("mnist").lines("SEEN") == ["4 2 0"] * 2


def test_torchruns_variables_and_a_snapshot(jobs):
    job = jobs.ended("torchrun")
    assert job.lines("WORLD") == ["2 1"] * 2
    assert job.lines("RESUMES") == ["0"] * 2
    assert jobs.endpoint.get(f"s3://{BUCKET}/others/snapshots/snapshot.pt")[:2] == b"PK"


def test_a_trainer_like_loop(jobs):
    job = jobs.ended("trainer")
    assert job.lines("ARGS") == ["True False 0.001 ['--seed', '7']"]
    assert job.lines("HPS") == ["['no', 'yes'] 4"]
    assert job.lines("BEGAN") == ["2"]  # the checkpoint that was in S3
    state = jobs.endpoint.get(f"{CHECKPOINTS}/checkpoint-4/trainer_state.json")
    assert json.loads(state) == {"global_step": 4}


def test_an_archive_of_another_user_and_a_shell_entry_point(jobs):
    assert jobs.ended("shell").lines("UNPACKED") == ["hello"]


def test_a_session_in_the_job_model_dir_in_s3_and_tensorboard(jobs):
    job = jobs.ended("session")
    assert job.lines("PUT") == [f"s3://{BUCKET}/others/model/weights.txt"]
    assert job.lines("TELLS") == ["InProgress"]
    assert jobs.endpoint.get(f"s3://{BUCKET}/others/model/weights.txt") == b"0.5"
    board = f"s3://{BUCKET}/others/board/{job.name}/tensorboard-output/events.out.tfevents.1"
    assert jobs.endpoint.get(board) == b"event"


def test_mpi4py_over_two_hosts(jobs):
    assert jobs.ended("mpi4py").lines("SUM") == ["10 2"]


def test_a_function_of_the_notebooks(jobs):
    jobs.ended("keras 2")  # by then it has begun
    deadline = time.monotonic() + 120
    while jobs.remote is None and time.monotonic() < deadline:
        time.sleep(0.2)
    assert jobs.remote == 1.5


def test_trees_are_served_without_a_predict_fn(jobs):
    job, api = jobs.ended("trees"), jobs.endpoint.client("sagemaker")
    assert job.lines("LEAVES") == ["2"]
    container = {
        "Image": "registry.invalid/sagemaker-scikit-learn:1.2-1-cpu-py3",
        "ModelDataUrl": job.description["ModelArtifacts"]["S3ModelArtifacts"],
        "Environment": {
            "SAGEMAKER_PROGRAM": "sklearn_script.py",
            "SAGEMAKER_SUBMIT_DIRECTORY": json.loads(
                job.description["HyperParameters"]["sagemaker_submit_directory"]
            ),
        },
    }
    variant = {"VariantName": "all", "ModelName": "trees", "InstanceType": "ml.m5.large"}
    api.create_model(ModelName="trees", ExecutionRoleArn=ROLE, PrimaryContainer=container)
    api.create_endpoint_config(
        EndpointConfigName="trees", ProductionVariants=[variant | {"InitialInstanceCount": 1}]
    )
    api.create_endpoint(EndpointName="trees", EndpointConfigName="trees")
    told = api.describe_endpoint(EndpointName="trees")
    assert told["EndpointStatus"] == "InService", told.get("FailureReason")
    invoke = jobs.endpoint.client("sagemaker-runtime").invoke_endpoint
    answer = invoke(EndpointName="trees", ContentType="text/csv", Body=b"5.0,3.3\n6.9,3.1\n")
    assert json.loads(answer["Body"].read()) == [0.0, 1.0]
    api.delete_endpoint(EndpointName="trees")


@pytest.mark.skipif(PIN is None, reason="this torch is not built for CPUs alone")
def test_a_requirement_leaves_the_frameworks_as_they_are(jobs):
    fits, torch = PIN.partition("==")[2], constraints("")[0].partition("==")[2]
    assert jobs.ended("torchvision").lines("VERSIONS") == [f"{fits} {torch}"]


def test_what_a_requirements_file_names_is_not_held():
    assert not any(line.startswith(("torch", "keras")) for line in constraints("Torch==1.0\nkeras"))
    assert any(line.startswith("tensorflow==") for line in constraints("tensorflow-io\n# torch"))


def test_a_script_that_asks_sts(jobs):
    job = jobs.endpoint.wait(jobs.names["sts"])
    assert job.status == "Failed"
    first = job.description["FailureReason"].splitlines()[0]
    assert first.startswith("AlgorithmError: [local] get_execution_role() and account_id() ask")
    assert "Session(default_bucket=...)" in first


@pytest.mark.parametrize(
    ("told", "hint"),
    [
        ("No matching distribution found for torchvision==0.28.0+cpu", "--extra-index-url"),
        ("RuntimeError: operator torchvision::nms does not exist", "built for another torch"),
        ("ModuleNotFoundError: No module named 'xgboost'", "lacks xgboost"),
        ("ImportError: Extension horovod.torch has not been built", "horovod.tensorflow"),
    ],
)
def test_what_this_machine_lacks_is_said_first(tmp_path, told, hint):
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "failure").write_text(f"ExecuteUserScriptError:\n{told}")
    first, rest = failure.reason(tmp_path, 1).split("\n", 1)
    assert first.startswith("AlgorithmError: [local] ") and hint in first
    assert rest == f"ExecuteUserScriptError:\n{told}, exit code: 1"


def test_each_region_has_jobs_of_its_own(jobs):
    job = jobs.ended("shell")
    there = jobs.endpoint.client("sagemaker", "eu-west-1")
    assert there.list_training_jobs()["TrainingJobSummaries"] == []
    with pytest.raises(ClientError, match="resource not found"):
        there.describe_training_job(TrainingJobName=job.name)
    script = {"ContainerEntrypoint": ["/bin/sh", "-c", "echo REGION $AWS_REGION"]}
    body = request(job.name)
    body["AlgorithmSpecification"] |= script
    arn = there.create_training_job(**body)["TrainingJobArn"]
    assert arn.split(":")[3] == "eu-west-1"
    (known,) = there.list_training_jobs()["TrainingJobSummaries"]
    assert known["TrainingJobArn"] == arn
    there.stop_training_job(TrainingJobName=job.name)
    assert jobs.endpoint.wait(job.name).status == "Completed"


@pytest.mark.parametrize(
    ("kind", "count"),
    [("ml.p3.16xlarge", 8), ("ml.p2.xlarge", 1), ("ml.p4d.24xlarge", 8), ("ml.m5.xlarge", 0)],
)
def test_gpus_of_types_old_and_new(kind, count):
    assert instance_types.gpus(kind) == count


def test_awss_own_policies(endpoint):
    """The first lines of many notebooks: a role with AmazonSageMakerFullAccess."""
    iam, name = endpoint.client("iam"), "role-of-others"
    iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS)
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    assert [one["PolicyArn"] for one in attached] == [FULL_ACCESS]
    assert iam.get_policy(PolicyArn=FULL_ACCESS)["Policy"]["AttachmentCount"] == 1
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS + "Typo")


def test_logs_by_the_streams_prefix(endpoint):
    """As `aws logs filter-log-events --log-stream-name-prefix JOB`."""
    logs = endpoint.client("logs")
    logs.create_log_group(logGroupName="others")
    for name in ("one/algo-1", "two/algo-1"):
        logs.create_log_stream(logGroupName="others", logStreamName=name)
        event = {"timestamp": int(1000 * time.time()), "message": f"of {name}"}
        logs.put_log_events(logGroupName="others", logStreamName=name, logEvents=[event])

    def found(prefix: str) -> list[str]:
        told = logs.filter_log_events(logGroupName="others", logStreamNamePrefix=prefix)
        return [one["message"] for one in told["events"]]

    assert (found("one/"), found("three/")) == (["of one/algo-1"], [])


RULE = {"RuleConfigurationName": "LossNotDecreasing", "RuleEvaluatorImage": "image"}
HOOK = {"S3OutputPath": "s3://b/x", "CollectionConfigurations": [{"CollectionName": "losses"}]}
BOARD = {"S3OutputPath": "s3://b/x", "LocalPath": "/tmp/board"}


@pytest.mark.parametrize(
    ("members", "instead"),
    [
        ({"DebugRuleConfigurations": [RULE]}, "leave the estimator's rules out"),
        ({"ProfilerRuleConfigurations": [RULE]}, "leave the estimator's rules out"),
        ({"DebugHookConfig": HOOK}, "TensorBoardOutputConfig"),
        ({"ExperimentConfig": {"ExperimentName": "e"}}, "leave experiment_config out"),
        ({"TensorBoardOutputConfig": BOARD}, "copies /opt/ml/output/tensorboard only"),
    ],
)
def test_what_a_job_would_do_without_is_refused(endpoint, members, instead):
    with pytest.raises(ClientError, match=instead):
        endpoint.client("sagemaker").create_training_job(**request("others-refused", **members))


PROCESSING = {
    "ProcessingJobName": "one",
    "RoleArn": ROLE,
    "AppSpecification": {"ImageUri": "image"},
    "ProcessingResources": {
        "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
    },
}
PIPELINE = {"PipelineName": "p", "PipelineDefinition": "{}", "ClientRequestToken": "t" * 32}
SERVES = {"E": {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointConfigName": "c"}}}


@pytest.mark.parametrize(
    ("service", "call", "members", "told"),
    [
        ("sagemaker", "create_processing_job", PROCESSING, "does not run processing jobs"),
        ("sagemaker", "create_pipeline", PIPELINE | {"RoleArn": ROLE}, "does not run pipelines"),
        ("sagemaker", "search", {"Resource": "TrainingJob"}, "list_training_jobs finds jobs"),
        ("pricing", "get_products", {"ServiceCode": "AmazonSageMaker"}, "does not offer this"),
        (
            "cloudformation",
            "create_stack",
            {"StackName": "serves", "TemplateBody": json.dumps({"Resources": SERVES})},
            "call create_endpoint",
        ),
    ],
)
def test_what_would_compute_is_not_said_to_have_run(endpoint, service, call, members, told):
    with pytest.raises(ClientError, match=told):
        getattr(endpoint.client(service), call)(**members)


def test_mpi_of_the_sdks_model_trainer_is_refused_in_a_sentence(endpoint):
    """ModelTrainer(distributed=MPI()): its driver, which starts sshd, is in a channel."""
    endpoint.put("others/drivers/sm_train.sh", "python .../distributed_drivers/mpi_driver.py\n")
    body = request("others-mpi-driver")
    body["AlgorithmSpecification"]["ContainerEntrypoint"] = ["/bin/bash"]
    source = {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/others/drivers"}
    channel = {"ChannelName": "sm_drivers", "DataSource": {"S3DataSource": source}}
    endpoint.client("sagemaker").create_training_job(**body, InputDataConfig=[channel])
    job = endpoint.wait("others-mpi-driver")
    assert job.status == "Failed"
    assert "Use an estimator with distribution=" in job.description["FailureReason"]
