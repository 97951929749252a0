"""Each way to train as a job of the SDK's version 3: what notebooks/reference.ipynb shows of it.

    python notebooks/sdk_v3/recipes.py     # in version 3's environment; `make sdk-v3` does it

writes requests.json beside it: the CreateTrainingJob request of each recipe, as version 3 makes it
and botocore accepts it. Nothing is sent. Each function is a recipe, whole: give it your role,
bucket, image, folder of scripts and session, and call `.train()` on what it returns. SMDDP is not
among them: version 3 has nothing that starts it, so it takes version 2.
"""

import datetime
import importlib.metadata
import json
from pathlib import Path

import boto3
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.shapes import Tag
from sagemaker.core.training.configs import (
    Compute,
    InputData,
    OutputDataConfig,
    SourceCode,
    StoppingCondition,
)
from sagemaker.train import ModelTrainer
from sagemaker.train.distributed import MPI, Torchrun

RECORDING = Path(__file__).with_name("requests.json")
SCRIPTS = Path(__file__).parents[2] / "scripts" / "train"
# Names in the form of real ones: nobody's.
ROLE = f"arn:aws:iam::{'0' * 12}:role/workshop-me-training"
BUCKET = "workshop-me"


def one_process(role, bucket, image, source_dir, session):
    """One PyTorch process."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_torch.py"),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=1, volume_size_in_gb=30),
        hyperparameters={"epochs": 2},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-one-process",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def ddp(role, bucket, image, source_dir, session):
    """DistributedDataParallel: torchrun on each of two instances."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_torch_ddp.py"),
        distributed=Torchrun(process_count_per_node=1),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=2, volume_size_in_gb=30),
        hyperparameters={"epochs": 2},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-ddp",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def fsdp(role, bucket, image, source_dir, session):
    """FSDP: torchrun, as for DDP."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_torch_fsdp.py"),
        distributed=Torchrun(),
        compute=Compute(instance_type="ml.g5.12xlarge", instance_count=2, volume_size_in_gb=30),
        hyperparameters={"epochs": 2, "channels": 256, "blocks": 12, "learning-rate": 0.01},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-fsdp",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def horovod(role, bucket, image, source_dir, session):
    """Horovod, 2 x 1 ranks: the driver takes all ranks, not those of a node."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_tf_horovod.py"),
        distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "node"]),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=2, volume_size_in_gb=30),
        hyperparameters={"epochs": 2},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-horovod",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def multiworker(role, bucket, image, source_dir, session):
    """MultiWorkerMirrored: no key, so the command sets TF_CONFIG."""
    # Version 3 makes one line of it: every statement needs its semicolon.
    command = r"""export TF_CONFIG=$(python -c 'import json, os;
hosts = json.loads(os.environ["SM_HOSTS"]);
task = {"type": "worker", "index": hosts.index(os.environ["SM_CURRENT_HOST"])};
print(json.dumps({"cluster": {"worker": [f"{host}:8890" for host in hosts]}, "task": task}))');
python train_tf_mirrored.py --epochs 2"""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, command=command),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=2, volume_size_in_gb=30),
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-multiworker",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def parameter_server(role, bucket, image, source_dir, session):
    """Parameter servers: no key, so the command starts them, one on each host."""
    # Version 3 makes one line of it: every statement needs its semicolon.
    command = r"""tf_config() { python -c 'import json, os, sys;
hosts, here = json.loads(os.environ["SM_HOSTS"]), os.environ["SM_CURRENT_HOST"];
cluster = {"master": [f"{hosts[0]}:2222"], "worker": [f"{host}:2222" for host in hosts[1:]]};
cluster["ps"] = [f"{host}:2223" for host in hosts];
kind = "ps" if sys.argv[1:] else "master" if here == hosts[0] else "worker";
index = [address.split(":")[0] for address in cluster[kind]].index(here);
task = {"type": kind, "index": index};
print(json.dumps({"cluster": cluster, "environment": "cloud", "task": task}))' "$@"; };
TF_CONFIG=$(tf_config ps) CUDA_VISIBLE_DEVICES="" python -c 'import json, os, tensorflow as tf;
config = json.loads(os.environ["TF_CONFIG"]);
cluster, index = config["cluster"], config["task"]["index"];
waiting = sum(map(len, cluster.values()));
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=waiting);
tf.distribute.Server(cluster, "ps", index, "grpc", threads).join()' &
server=$!;
TF_CONFIG=$(tf_config) python train_tf_ps.py --epochs 2;
kill $server"""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, command=command),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=3, volume_size_in_gb=30),
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-parameter-server",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def mirrored(role, bucket, image, source_dir, session):
    """MirroredStrategy: one process, all GPUs of the machine."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_tf_mirrored.py"),
        compute=Compute(instance_type="ml.g5.12xlarge", instance_count=1, volume_size_in_gb=30),
        hyperparameters={"epochs": 2},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-mirrored",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


def fit(role, bucket, image, source_dir, session):
    """Keras fit with Horovod, 2 x 1 ranks."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=source_dir, entry_script="train_tf_fit.py"),
        distributed=MPI(process_count_per_node=2, mpi_additional_options=["--map-by", "node"]),
        compute=Compute(instance_type="ml.c5.xlarge", instance_count=2, volume_size_in_gb=30),
        hyperparameters={"epochs": 2, "library": "horovod"},
        input_data_config=[
            InputData(channel_name="training", data_source=f"s3://{bucket}/data/digits/training"),
            InputData(channel_name="test", data_source=f"s3://{bucket}/data/digits/test"),
        ],
        output_data_config=OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        stopping_condition=StoppingCondition(max_runtime_in_seconds=1800),
        tags=[Tag(key="workshop", value="data-parallel"), Tag(key="seat", value="me")],
        base_job_name="workshop-me-fit",
        training_image=image,
        role=role,
        sagemaker_session=session,
    )


RECIPES = (one_process, ddp, fsdp, horovod)
RECIPES += (multiworker, parameter_server, mirrored, fit)


class Sent(Exception):
    """Version 3 was about to send a request; `request` is it."""

    def __init__(self, request: dict):
        self.request = request


def request(recipe) -> dict:
    """The CreateTrainingJob request of a recipe. Uploads get an empty answer."""

    def keep(params: dict, model, **_):
        if model.name == "CreateTrainingJob":
            raise Sent(json.loads(params["body"]))
        if model.service_model.service_name == "iam":  # it asks about the role, and does without
            raise ClientError({"Error": {"Code": "AccessDenied"}}, model.name)
        bucket = {"Name": BUCKET, "CreationDate": datetime.datetime.now()}  # it asks if it is there
        return AWSResponse("kept", 200, {}, None), {"Buckets": [bucket]}

    keys = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}
    boto_session = boto3.Session(region_name="us-east-1", **keys)
    boto_session.events.register("before-call.*.*", keep)
    session = Session(boto_session=boto_session, default_bucket=BUCKET)
    trainer = recipe(ROLE, BUCKET, "not-pulled-here", str(SCRIPTS), session)
    try:
        trainer.train(wait=False, logs=False)
    except Sent as sent:
        return sent.request
    raise RuntimeError(f"{recipe.__name__} sent nothing")


def main() -> None:
    """Write requests.json, unless it says the same already."""
    version = importlib.metadata.version("sagemaker")
    made = {recipe.__name__: request(recipe) for recipe in RECIPES}
    for sent in made.values():  # names with the time in them: another in each run
        name = sent.pop("TrainingJobName")
        sent |= json.loads(json.dumps(sent).replace(name, "NAME"))
    before = json.loads(RECORDING.read_text()) if RECORDING.exists() else {}
    if (before.get("requests"), before.get("sagemaker")) != (made, version):
        about = {"date": f"{datetime.date.today()}", "sagemaker": version, "requests": made}
        RECORDING.write_text(json.dumps(about, indent=1) + "\n")
        print(f"Wrote {RECORDING.name}: the requests of {len(made)} recipes.")


if __name__ == "__main__":
    main()
