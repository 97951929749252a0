"""Two of the course's jobs through version 3 of the SageMaker SDK: `make sdk-v3`.

    make sdk-v3                  # both
    make sdk-v3 JOB=ddp          # train_torch_ddp.py: torchrun, 2 instances of 1 process
    make sdk-v3 JOB=horovod      # train_tf_horovod.py: mpirun, 1 instance of 2 processes

Runs in an environment of its own (build/sdk-v3), against whatever endpoint the shell names:
`make sdk-v3` starts the local one. Needs the stacks and the data of lesson 00.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from pathlib import Path

import boto3
from botocore.exceptions import WaiterError
from sagemaker.core.helper.session_helper import Session
from sagemaker.train import ModelTrainer
from sagemaker.train.configs import (
    Compute,
    InputData,
    OutputDataConfig,
    SourceCode,
    StoppingCondition,
)
from sagemaker.train.distributed import Torchrun

SCRIPTS = str(Path(__file__).resolve().parents[2] / "scripts")
CHANNELS = ("training", "test")
# Version 3's own MPI driver is not used: see README.md.
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --bind-to none -np 2"


def main() -> int:
    """Train; 1 if a job does not end as Completed, 2 if the stacks are missing."""
    parser = argparse.ArgumentParser(prog="make sdk-v3")
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="ddp, horovod (default: both)")
    parser.add_argument("--seat", default="me", help="whose stacks (default: me)")
    parser.add_argument("--image", default="not-pulled-here", help="on AWS: a training image's URI")
    asked = parser.parse_args()
    known = {"ddp": ddp, "horovod": horovod}
    if wrong := set(asked.jobs) - set(known):
        parser.error(f"unknown job {', '.join(sorted(wrong))}; there are: {', '.join(known)}.")
    try:
        bucket, role = outputs(asked.seat)
    except LookupError as error:
        print(error, file=sys.stderr)
        return 2
    common = {
        "sagemaker_session": Session(default_bucket=bucket),
        "role": role,
        "training_image": asked.image,
        "output_data_config": OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        "stopping_condition": StoppingCondition(max_runtime_in_seconds=600),
    }
    statuses = [train(known[name](common), bucket) for name in asked.jobs or known]
    return int(any(status != "Completed" for status in statuses))


def ddp(common: dict) -> ModelTrainer:
    """torchrun on two instances: the driver of version 3 knows how."""
    return ModelTrainer(
        source_code=SourceCode(source_dir=SCRIPTS, entry_script="train_torch_ddp.py"),
        distributed=Torchrun(process_count_per_node=1),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=2),
        hyperparameters={"epochs": 5},
        base_job_name="workshop-v3-ddp",
        **common,
    )


def horovod(common: dict) -> ModelTrainer:
    """mpirun as a command of our own, on one instance."""
    command = f"{MPIRUN} python train_tf_horovod.py --epochs 5"
    return ModelTrainer(
        source_code=SourceCode(source_dir=SCRIPTS, command=command),
        compute=Compute(instance_type="ml.m5.xlarge", instance_count=1),
        base_job_name="workshop-v3-horovod",
        **common,
    )


def train(trainer: ModelTrainer, bucket: str) -> str:
    """Run a job to its end; its status."""
    inputs = [
        InputData(channel_name=name, data_source=f"s3://{bucket}/data/digits/{name}")
        for name in CHANNELS
    ]
    trainer.train(input_data_config=inputs, wait=False, logs=False)
    name = trainer._latest_training_job.training_job_name
    print(f"{name}: started", flush=True)
    client = boto3.client("sagemaker")
    waiter = client.get_waiter("training_job_completed_or_stopped")
    with contextlib.suppress(WaiterError):  # it failed; the status below says so
        waiter.wait(TrainingJobName=name, WaiterConfig={"Delay": 2, "MaxAttempts": 300})
    told = client.describe_training_job(TrainingJobName=name)
    print(f"{name}: {told['TrainingJobStatus']} {told.get('FailureReason', '')}", flush=True)
    return told["TrainingJobStatus"]


def outputs(seat: str) -> tuple[str, str]:
    """The bucket and the role of a seat's stacks. Raises LookupError with the remedy."""
    client, found = boto3.client("cloudformation"), {}
    for name in ("storage", "roles"):
        try:
            stack = client.describe_stacks(StackName=f"workshop-{seat}-{name}")["Stacks"][0]
        except client.exceptions.ClientError as error:
            where = os.environ.get("AWS_ENDPOINT_URL", "AWS")
            raise LookupError(
                f"The stacks of seat {seat!r} are not on {where} ({error}). Run lesson 00 first: "
                "workshop run 00"
            ) from error
        found |= {one["OutputKey"]: one["OutputValue"] for one in stack["Outputs"]}
    return found["BucketName"], found["TrainingRoleArn"]


if __name__ == "__main__":
    sys.exit(main())
