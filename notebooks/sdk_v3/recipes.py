"""What all jobs of a seat share with version 3 of the SDK: every lesson's code uses these names."""

import time

import boto3
from sagemaker.core import image_uris
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.shapes import Channel, DataSource, MetricDefinition, S3DataSource, Tag
from sagemaker.core.training.configs import (
    CheckpointConfig,
    Compute,
    InputData,
    Networking,
    OutputDataConfig,
    SourceCode,
    StoppingCondition,
)
from sagemaker.train import ModelTrainer
from sagemaker.train.distributed import MPI, Torchrun

seat = "me"
boto_session, outputs = boto3.Session(), {}
for name in ("storage", "roles"):  # the stacks of lesson 00
    stacks = boto_session.client("cloudformation").describe_stacks(
        StackName=f"workshop-{seat}-{name}"
    )
    outputs |= {each["OutputKey"]: each["OutputValue"] for each in stacks["Stacks"][0]["Outputs"]}
bucket, role = outputs["BucketName"], outputs["TrainingRoleArn"]
session = Session(boto_session=boto_session, default_bucket=bucket)
subnets, security_group_ids = ["subnet-..."], ["sg-..."]  # your own, as in lesson 06
# What the scripts print in their JSON lines, for SageMaker to read from the log.
METRICS = [
    MetricDefinition(name=name, regex=rf'"{name}": ([0-9.eE+-]+)')
    for name in ("train_loss", "test_accuracy", "samples_per_second", "step_seconds")
]


def image(framework, version, instance_type, scope="training"):
    """The address of AWS's image: version 3 chooses none by itself."""
    region = boto_session.region_name
    return image_uris.retrieve(
        framework, region, version=version, instance_type=instance_type, image_scope=scope
    )


def shared(name):
    """The arguments that all jobs share, as `session.job_settings(name)` for version 2."""
    return {
        "sagemaker_session": session,
        "role": role,
        "base_job_name": f"workshop-{seat}-{name}",
        "output_data_config": OutputDataConfig(s3_output_path=f"s3://{bucket}/jobs"),
        "tags": [Tag(key="workshop", value="data-parallel"), Tag(key="seat", value=seat)],
    }
