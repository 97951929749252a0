"""Job configurations: those that go together, and those that do not, each with its reason."""

from __future__ import annotations

from workshop.account.preflight import JobConfiguration

# A job that is right. Each of the others differs from it.
RIGHT = {
    "framework": "tensorflow",
    "framework_version": "2.12.0",
    "py_version": "py310",
    "instance_type": "ml.c5.xlarge",
    "instance_count": 2,
}
PYTORCH = {"framework": "pytorch", "framework_version": "2.2.0", "py_version": "py310"}
P4D = {"instance_type": "ml.p4d.24xlarge"}
IMAGE = {"image_uri": "0" * 12 + ".dkr.ecr.us-east-1.amazonaws.com/horovod:1"}
SPOT = {"use_spot": True, "max_wait": 3600, "checkpoint_s3_uri": "s3://bucket/checkpoints"}
VPC = {"subnets": ("subnet-a",), "security_group_ids": ("sg-a",)}
MPI = {"mpi": {"enabled": True}}
SERVERS = {"parameter_server": {"enabled": True}}
MULTI_WORKER = {"multi_worker_mirrored_strategy": {"enabled": True}}
TORCH = {"torch_distributed": {"enabled": True}}
SMDDP = {"smdistributed": {"dataparallel": {"enabled": True}}}


def mpi(**options) -> dict:
    """A distribution that starts mpirun with these options."""
    return {"mpi": {"enabled": True, **options}}


def job(*changes: dict, **more) -> JobConfiguration:
    """RIGHT with changes."""
    fields = dict(RIGHT)
    for one in (*changes, more):
        fields |= one
    return JobConfiguration(**fields)


def pytorch(*changes: dict, **more) -> JobConfiguration:
    """RIGHT in PyTorch, with changes."""
    return job(PYTORCH, *changes, **more)


GOOD = {
    "one instance": job(instance_count=1),
    "horovod": job(distribution=mpi(processes_per_host=2)),
    "horovod, every vCPU": job(distribution=mpi(processes_per_host=4)),
    "horovod in an image of one's own": job(IMAGE, framework_version="2.18.0", distribution=MPI),
    "horovod for PyTorch": pytorch(
        framework_version="1.13.1",
        py_version="py39",
        instance_type="ml.g4dn.xlarge",
        distribution=mpi(processes_per_host=1, custom_mpi_options="-x NCCL_DEBUG=INFO"),
    ),
    "parameter servers": job(framework_version="2.14.1", distribution=SERVERS, instance_count=3),
    "multi-worker": job(distribution=MULTI_WORKER),
    "multi-worker, new": job(framework_version="2.18.0", distribution=MULTI_WORKER),
    "PyTorch, no distribution": pytorch(),
    "SMDDP": pytorch(P4D, distribution=SMDDP),
    "torchrun on P4d": pytorch(
        P4D, framework_version="2.5.1", py_version="py311", distribution=TORCH
    ),
    "SMDDP for TensorFlow": job(
        P4D, framework_version="2.11.0", py_version="py39", distribution=SMDDP
    ),
    "torchrun": pytorch(
        framework_version="2.8.0",
        py_version="py312",
        instance_type="ml.g5.xlarge",
        distribution=TORCH,
    ),
    "torchrun on CPUs": pytorch(IMAGE, distribution=TORCH),
    "spot": job(SPOT),
    "warm pool": job(keep_alive=600),
    "VPC": job(VPC),
    "VPC, EFA": pytorch(P4D, VPC, distribution=SMDDP),
    "a short version": job(framework_version="2.12"),
    "Europe": pytorch(P4D, distribution=SMDDP, region="eu-west-1"),
}

# name -> (job, part of the reason, part of the remedy)
BAD = {
    # the dictionary
    "horovod as a key": (job(distribution={"horovod": {"enabled": True}}), '"horovod"', '"mpi"'),
    "a misspelt key": (
        job(distribution={"parameter_sever": {"enabled": True}}),
        '"parameter_sever"',
        '"parameter_server"',
    ),
    "a misspelt option": (
        job(distribution=mpi(custom_mpi_option="-x A=1")),
        '"custom_mpi_option" in mpi',
        '"custom_mpi_options"',
    ),
    "no dictionary": (job(distribution={"mpi": True}), "mpi is True", '{"mpi": {"enabled"'),
    "not enabled": (
        job(distribution={"mpi": {"processes_per_host": 2}}),
        "mpi is given but not enabled",
        '"enabled": True',
    ),
    "enabled is a text": (
        job(distribution={"parameter_server": {"enabled": "true"}}, framework_version="2.14.1"),
        "enabled is 'true'",
        "without quotation marks",
    ),
    "two at once": (
        job(distribution=MPI | SERVERS),
        "mpi and parameter_server are enabled together",
        "Keep the one",
    ),
    "dataparallel is no dictionary": (
        pytorch(P4D, distribution={"smdistributed": {"dataparallel": True}}),
        "dataparallel is True",
        '{"dataparallel": {"enabled"',
    ),
    # SMDDP
    "SMDDP on CPUs": (pytorch(distribution=SMDDP), "ml.c5.xlarge has none", "ml.p4d.24xlarge"),
    "SMDDP on P3": (
        pytorch(distribution=SMDDP, instance_type="ml.p3dn.24xlarge"),
        "given up P3",
        "ml.p4d",
    ),
    "SMDDP on P5": (
        pytorch(distribution=SMDDP, instance_type="ml.p5.48xlarge"),
        "does not support P5",
        "backend nccl",
    ),
    "SMDDP on G5": (
        pytorch(distribution=SMDDP, instance_type="ml.g5.xlarge"),
        "only, not on ml.g5.xlarge",
        "torch_distributed",
    ),
    "SMDDP, TensorFlow too new": (
        job(P4D, distribution=SMDDP),
        "2.11.0 was the last version",
        'framework_version="2.11.0"',
    ),
    "SMDDP, not in the SDK's list": (
        pytorch(P4D, framework_version="2.4.0", py_version="py311", distribution=SMDDP),
        "its list ends at 2.2.0",
        "image_uri of a version up to 2.5.1",
    ),
    "SMDDP, PyTorch too new": (
        pytorch(P4D, framework_version="2.6.0", py_version="py312", distribution=SMDDP),
        "2.6.0's image has no SMDDP",
        "image_uri of 2.5.1",
    ),
    "SMDDP by torchrun": (
        pytorch(P4D, distribution=TORCH, script='init_process_group("smddp")'),
        "AllReduce works under mpirun only",
        '"smdistributed"',
    ),
    # Horovod
    "no Horovod in TensorFlow's image": (
        job(framework_version="2.14.1", distribution=MPI),
        "would fail in 2.14.1",
        'framework_version="2.12.0"',
    ),
    "no Horovod in PyTorch's image": (
        pytorch(distribution=MPI),
        "would fail in 2.2.0",
        'framework_version="1.13.1"',
    ),
    "more processes than vCPUs": (
        job(distribution=mpi(processes_per_host=8)),
        "ml.c5.xlarge has 4 vCPUs",
        "4 at most",
    ),
    "more processes than GPUs": (
        job(distribution=mpi(processes_per_host=4), instance_type="ml.g5.xlarge"),
        "ml.g5.xlarge has 1 GPU:",
        "1 at most",
    ),
    "no process": (
        job(distribution=mpi(processes_per_host=0)),
        "processes_per_host is 0",
        "whole number",
    ),
    "the toolkit's pseudo-flag": (
        job(distribution=mpi(custom_mpi_options="--NCCL_DEBUG=INFO")),
        "no option of mpirun",
        "-x NCCL_DEBUG=INFO",
    ),
    "MPI options as a list": (
        job(distribution=mpi(custom_mpi_options=["-x", "A=1"])),
        "splits a text",
        "one text",
    ),
    # other strategies
    "torchrun on CPUs": (pytorch(distribution=TORCH), "no accelerator", "ml.g5.xlarge"),
    "torchrun, a version that is not listed": (
        pytorch(
            framework_version="1.12.1",
            py_version="py38",
            distribution=TORCH,
            instance_type="ml.g5.xlarge",
        ),
        "1.12.1 is not in the SDK's list",
        "1.13.1",
    ),
    "torchrun for TensorFlow": (
        job(distribution=TORCH, instance_type="ml.g5.xlarge"),
        "which only PyTorch's images have",
        "multi_worker_mirrored_strategy",
    ),
    "multi-worker, too old": (
        job(framework_version="2.8.0", py_version="py39", distribution=MULTI_WORKER),
        "2.9 or newer, not 2.8.0",
        "2.14.1",
    ),
    "multi-worker for PyTorch": (
        pytorch(distribution=MULTI_WORKER),
        "refuses it for PyTorch",
        "torch_distributed",
    ),
    "servers for PyTorch": (
        pytorch(distribution=SERVERS),
        "starts no servers",
        "torch_distributed",
    ),
    "servers on one instance": (
        job(distribution=SERVERS, framework_version="2.14.1", instance_count=1),
        "with 1 instance",
        "instance_count=2",
    ),
    "servers and many GPUs": (
        job(P4D, distribution=SERVERS, framework_version="2.14.1"),
        "7 of the 8 GPUs",
        "one GPU",
    ),
    "MPI on Trainium": (
        pytorch(
            framework_version="1.11.0",
            distribution=MPI,
            instance_type="ml.trn1.2xlarge",
            py_version="py38",
        ),
        "Trainium chips",
        "torch_distributed",
    ),
    # images
    "the wrong Python": (job(py_version="py38"), "no Python 'py38'", "'py310'"),
    "a version without an image": (job(framework_version="2.15"), "version 2.15", "2.14.1"),
    "a version of the future": (job(framework_version="3.0.1"), "version 3.0.1", "image_uri"),
    "a region without images": (
        job(region="eusc-de-east-1"),
        "finds no image: Unsupported region",
        "image_uri",
    ),
    # instances
    "no ml.": (job(instance_type="m5.xlarge"), "a type of EC2", '"ml.m5.xlarge"'),
    "a misspelt type": (job(instance_type="ml.c5.xlrage"), '"ml.c5.xlrage"', "ml.c5.xlarge"),
    "the SDK's local mode": (job(instance_type="local"), "needs Docker", 'target="local"'),
    "no instance": (job(instance_count=0), "instance_count is 0", "1 or more"),
    "no such region": (job(region="us-east-9"), 'no region "us-east-9"', "us-east-"),
    "a region without the type": (
        pytorch(instance_type="ml.p4de.24xlarge", distribution=SMDDP, region="eu-west-3"),
        "eu-west-3 does not have ml.p4de.24xlarge",
        "us-west-2",
    ),
    # limits
    "spot without checkpoints": (job(SPOT, checkpoint_s3_uri=""), "again from nothing", "check"),
    "spot without max_wait": (job(SPOT, max_wait=None), "max_wait is missing", "max_wait=3600"),
    "spot waits less than it runs": (
        job(SPOT, max_wait=60),
        "max_wait (60 s) is below max_run (1800 s)",
        "max_wait=1800",
    ),
    "max_wait without spot": (job(max_wait=3600), "not a spot job", "use_spot_instances=True"),
    "a warm pool of spot": (job(SPOT, keep_alive=600), "cannot be made of spot", "one of the two"),
    "a warm pool for a day": (job(keep_alive=86400), "takes 0 to 21600 s", "billed"),
    "too long": (job(max_run=30 * 86400), "longer than 28 days", "bounds"),
    "no time": (job(max_run=0), "max_run is 0 s", "1800"),
    "checkpoints nowhere": (
        job(checkpoint_s3_uri="/opt/ml/checkpoints"),
        "must be a place in S3",
        "s3://BUCKET",
    ),
    # network
    "a subnet without a group": (job(subnets=("subnet-a",)), "no VPC at all", "Give both"),
    "a group without a subnet": (job(security_group_ids=("sg-a",)), "without subnets", "neither"),
    "EFA over subnets": (
        pytorch(P4D, VPC, distribution=SMDDP, subnets=("subnet-a", "subnet-b")),
        "2 subnets may be in several",
        "one subnet",
    ),
    "too many subnets": (
        job(VPC, subnets=tuple(f"subnet-{n}" for n in range(17))),
        "CreateTrainingJob takes 16",
        "One subnet is best",
    ),
}
