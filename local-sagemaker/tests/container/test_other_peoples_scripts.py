"""Scripts and calls as others write them: each imitates what its docstring or comment names.

The jobs of all tests are started together, once: most of their time is Python's imports.
"""

import functools
import json
import re
import shutil
import threading
import time
import types
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from command_harness import ok, run
from emulator_harness import IMAGE, SCRIPTS, command_request, estimator, request, start, until
from hosting_helpers import archive

from local_sagemaker.cli import main
from local_sagemaker.pytest_plugin import BUCKET, ROLE, sdk_session

FULL_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"


class Jobs:
    """The jobs, by what they imitate. remote: what functions of @remote gave, or raised."""

    def __init__(self, emulator, names: dict[str, str]) -> None:
        self.emulator, self.names, self.remote = emulator, names, []

    def ended(self, name: str, status: str = "Completed"):
        job = self.emulator.wait(self.names[name])
        assert job.status == status, job.description.get("FailureReason")
        return job


@pytest.fixture(scope="module")
def jobs(emulator, tmp_path_factory):
    import sagemaker

    shell = tmp_path_factory.mktemp("shell")
    shutil.copy(SCRIPTS / "untar.sh", shell)
    (shell / "requirements.txt").touch()

    emulator.put("others/foreign/foreign.tar.gz", archive({"foreign.txt": "hello"}, owner=4711))
    with pytest.MonkeyPatch.context() as patch:
        sdk = sdk_session(emulator, patch)

        def begin(script: str, inputs: object = "default", **extra) -> str:
            return start(estimator(sdk, script, instance_count=1, **extra), inputs)

        tensorboard = sagemaker.debugger.TensorBoardOutputConfig(f"s3://{BUCKET}/others/board")
        names = {
            "keras 2": begin("keras_2_script.py", disable_output_compression=True),
            "shell": begin(
                "untar.sh", {"training": f"s3://{BUCKET}/others/foreign"}, source_dir=str(shell)
            ),
            "session": begin(
                "session_script.py",
                model_dir=f"s3://{BUCKET}/others/model",
                tensorboard_output_config=tensorboard,
            ),
        }
        jobs = Jobs(emulator, names)

        def wait(job, timeout=None) -> None:
            """As the SDK's own, which looks at a job every 30 seconds only."""
            job._last_describe_response = emulator.wait(job.job_name).description

        patch.setattr("sagemaker.remote_function.job._Job.wait", wait)
        asks = threading.Thread(target=_remotely, args=(jobs, sdk))
        asks.start()
        yield jobs
        asks.join(180)


def _remotely(jobs: Jobs, session) -> None:
    """As "Run your local code as a SageMaker training job" of AWS's documentation."""
    from sagemaker.remote_function import remote

    place = {"role": ROLE, "image_uri": IMAGE, "instance_type": "ml.m5.large"}
    place |= {"sagemaker_session": session, "s3_root_uri": f"s3://{BUCKET}/others/remote"}

    @remote(**place)
    def divide(x, y):
        return x / y

    @remote(**place, instance_count=2, use_mpirun=True, nproc_per_node=2)
    def ranks():
        from mpi4py import MPI

        return MPI.COMM_WORLD.allgather(MPI.COMM_WORLD.rank)

    for call in (functools.partial(divide, 3, 2), ranks):
        try:
            jobs.remote.append(call())
        except Exception as error:
            jobs.remote.append(error)


def test_keras_2_where_the_image_has_it_and_a_model_without_compression(jobs):
    job = jobs.ended("keras 2")
    assert job.lines("RATE") == ["0.01"]
    uri = job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri.endswith(f"/{job.name}/output/model/")
    assert jobs.emulator.get(f"{uri}weights.h5").startswith(b"\x89HDF")


def test_an_archive_of_another_user_and_a_shell_entry_point(jobs):
    job = jobs.ended("shell")
    assert job.lines("UNPACKED") == ["hello"]
    (message,) = job.lines("[local] requirements.txt is not installed")
    assert message.endswith("Let untar.sh begin with: pip install -r requirements.txt")


def test_a_session_in_the_job_model_dir_in_s3_tensorboard_and_a_question_to_sts(jobs):
    job = jobs.ended("session", "Failed")
    assert job.lines("PUT") == [f"s3://{BUCKET}/others/model/weights.txt"]
    assert job.lines("TELLS") == ["InProgress"]
    assert job.lines("KEYS") == ["/v2/credentials"], "as AWS's own examples look for it"
    assert job.lines("ROLE") == [f"{ROLE} sagemaker-us-east-1-local"]
    assert jobs.emulator.get(f"s3://{BUCKET}/others/model/weights.txt") == b"0.5"
    board = f"s3://{BUCKET}/others/board/{job.name}/tensorboard-output/events.out.tfevents.1"
    assert jobs.emulator.get(board) == b"event"
    first = job.description["FailureReason"].splitlines()[0]
    assert first.startswith("AlgorithmError: [local] account_id() asks AWS's STS")
    assert "TRAINING_JOB_ARN" in first


@pytest.mark.namespaces
@pytest.mark.parametrize(("number", "result"), [(0, 1.5), (1, [0, 1])], ids=["alone", "mpirun"])
def test_a_function_of_the_notebooks(jobs, number, result):
    jobs.ended("keras 2")  # by then it has begun
    until(lambda: len(jobs.remote) > number, 200)
    assert jobs.remote[number] == result


def test_each_region_has_jobs_of_its_own(jobs):
    job = jobs.ended("shell")
    there = jobs.emulator.client("sagemaker", "eu-west-1")
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
    assert jobs.emulator.wait(job.name).status == "Completed"
    command = functools.partial(run, main, jobs.emulator.state)
    env = {"AWS_ENDPOINT_URL": jobs.emulator.url, "AWS_DEFAULT_REGION": "eu-west-1"}
    assert [line.split()[-1] for line in ok(command("jobs", **env)).splitlines()] == [job.name]
    assert "is not pulled" in ok(command("logs", job.name))
    assert "is not pulled" not in ok(command("logs", job.name, **env))
    # A region alone is that of another account: the shell does not point here.
    assert len(ok(command("jobs", AWS_DEFAULT_REGION="eu-west-1")).splitlines()) > 1


@pytest.mark.namespaces
def test_a_job_of_another_region_is_interrupted(emulator):
    there = emulator.client("sagemaker", "eu-west-1")
    spot = {"EnableManagedSpotTraining": True}
    spot["StoppingCondition"] = {"MaxRuntimeInSeconds": 60, "MaxWaitTimeInSeconds": 60}
    there.create_training_job(**command_request("spot-elsewhere", ["sleep", "60"], **spot))
    env = {"AWS_ENDPOINT_URL": emulator.url, "AWS_DEFAULT_REGION": "eu-west-1"}
    answer = ok(run(main, emulator.state, "interrupt", "spot-elsewhere", **env))
    assert "its instances are taken away" in answer
    there.stop_training_job(TrainingJobName="spot-elsewhere")


def test_the_readmes_example_works_as_it_stands(emulator, monkeypatch, tmp_path):
    """local-sagemaker/README.md, for version 2; `make sdk-v3` has the environment of version 3."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    example = re.search(r"```python\n(import sagemaker\n.*?)```", readme, re.DOTALL)[1]
    for name in ("training", "test"):
        (tmp_path / "my_data" / name).mkdir(parents=True)
        (tmp_path / "my_data" / name / f"{name}.csv").touch()
    (tmp_path / "my_code").mkdir()
    (tmp_path / "my_code" / "train.py").write_text(
        "import os\n"
        "for name in ('TRAINING', 'TEST'):\n"
        "    print('CHANNEL', os.listdir(os.environ[f'SM_CHANNEL_{name}'])[0])\n"
        "open(os.environ['SM_MODEL_DIR'] + '/weights', 'w').close()\n"
    )
    sdk_session(emulator, monkeypatch)
    monkeypatch.chdir(tmp_path)
    # The SDK's clock runs thirty times as fast: it looks at a job every 30 s.
    clock = types.SimpleNamespace(
        time=lambda: 30 * time.time(), sleep=lambda seconds: time.sleep(seconds / 30)
    )
    monkeypatch.setattr("sagemaker.session.time", clock)
    jobs: dict = {}
    exec(example, jobs)
    assert jobs["estimator"].model_data.endswith("/output/model.tar.gz")
    job = emulator.wait(jobs["estimator"].latest_training_job.name)
    assert sorted(job.lines("CHANNEL")) == ["test.csv"] * 4 + ["training.csv"] * 4


def test_awss_own_policies(emulator):
    """The first lines of many notebooks: a role with AmazonSageMakerFullAccess."""
    iam, name = emulator.client("iam"), "role-of-others"
    iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS)
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    assert [item["PolicyArn"] for item in attached] == [FULL_ACCESS]
    assert iam.get_policy(PolicyArn=FULL_ACCESS)["Policy"]["AttachmentCount"] == 1
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS + "Typo")


def test_logs_by_the_streams_prefix(emulator):
    """As `aws logs filter-log-events --log-stream-name-prefix JOB`."""
    logs = emulator.client("logs")
    logs.create_log_group(logGroupName="others")
    for name in ("one/algo-1", "two/algo-1"):
        logs.create_log_stream(logGroupName="others", logStreamName=name)
        event = {"timestamp": int(1000 * time.time()), "message": f"of {name}"}
        logs.put_log_events(logGroupName="others", logStreamName=name, logEvents=[event])

    def logged(prefix: str) -> list[str]:
        response = logs.filter_log_events(logGroupName="others", logStreamNamePrefix=prefix)
        return [item["message"] for item in response["events"]]

    assert (logged("one/"), logged("three/")) == (["of one/algo-1"], [])


SERVES = {"E": {"Type": "AWS::SageMaker::Endpoint", "Properties": {"EndpointConfigName": "c"}}}


@pytest.mark.parametrize(
    ("service", "call", "members", "message"),
    [
        ("sagemaker", "search", {"Resource": "Experiment"}, "finds training jobs only"),
        ("pricing", "get_products", {"ServiceCode": "AmazonSageMaker"}, "does not offer this"),
        (
            "cloudformation",
            "create_stack",
            {"StackName": "serves", "TemplateBody": json.dumps({"Resources": SERVES})},
            "call create_endpoint",
        ),
    ],
)
def test_what_would_compute_is_not_said_to_have_run(emulator, service, call, members, message):
    """Every operation of SageMaker: test_every_operation.py."""
    with pytest.raises(ClientError, match=message):
        getattr(emulator.client(service), call)(**members)


@pytest.mark.namespaces
def test_mpi_of_the_sdks_model_trainer(emulator, monkeypatch):
    """ModelTrainer(distributed=MPI()): its driver, which wants sshd, is in a channel."""
    sdk_session(emulator, monkeypatch)
    from sagemaker.modules import Session, configs
    from sagemaker.modules.distributed import MPI
    from sagemaker.modules.train import ModelTrainer
    from sagemaker_core.main.utils import SingletonMeta

    monkeypatch.setattr(SingletonMeta, "_instances", {})  # its client is the process's first
    trainer = ModelTrainer(
        source_code=configs.SourceCode(source_dir=str(SCRIPTS), entry_script="show.py"),
        distributed=MPI(
            process_count_per_node=4, mpi_additional_options=["--map-by", "ppr:2:node"]
        ),
        compute=configs.Compute(instance_type="ml.c5.xlarge", instance_count=2),
        input_data_config=[
            configs.InputData(channel_name="training", data_source=f"s3://{BUCKET}/data")
        ],
        training_image="any",
        role=ROLE,
        sagemaker_session=Session(default_bucket=BUCKET),
    )
    ModelTrainer.train.__wrapped__(trainer, wait=False)  # below its telemetry
    job = emulator.wait(trainer._latest_training_job.training_job_name)
    assert job.status == "Completed", job.description.get("FailureReason")
    text = "\n".join(line for lines in job.log.values() for line in lines)
    ranks = [json.loads(seen) for seen in re.findall(r"SEEN (\{.*\})", text)]
    places = sorted((rank["rank"], rank["hostname"], rank["local_rank"]) for rank in ranks)
    assert places == [(0, "algo-1", 0), (1, "algo-1", 1), (2, "algo-2", 0), (3, "algo-2", 1)]
