"""Job configurations: those that go together, and those that do not, each with its rule."""

from __future__ import annotations

from workshop.account.preflight import JobConfiguration
from workshop.paths import TRAIN

TRAIN_SCRIPT = (TRAIN / "train_tf.py").read_text(encoding="utf-8")
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
SPOT = {"use_spot": True, "checkpoint_s3_uri": "s3://bucket/checkpoints"}
VPC = {"subnets": ("subnet-a",), "security_group_ids": ("sg-a",)}
MPI = {"mpi": {"enabled": True}}
SERVERS = {"parameter_server": {"enabled": True}}
MULTI_WORKER = {"multi_worker_mirrored_strategy": {"enabled": True}}
TORCH = {"torch_distributed": {"enabled": True}}
SMDDP = {"smdistributed": {"dataparallel": {"enabled": True}}}
G5 = {"instance_type": "ml.g5.xlarge"}
NEURON = {"instance_type": "ml.trn1.2xlarge", "framework_version": "1.11.0", "py_version": "py38"}


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
    "PyTorch by mpi, without Horovod": pytorch(distribution=MPI, script="import torch"),
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


def distribution(**entries) -> JobConfiguration:
    """RIGHT with a distribution of these entries."""
    return job(distribution=entries, framework_version="2.14.1")


# The one rule that speaks (its name in rules.toml), and a job against which it does
BAD = [
    ("no instance", job(instance_count=0)),
    ("local mode", job(instance_type="local")),
    ("EC2 type", job(instance_type="m5.xlarge")),
    ("unknown type", job(instance_type="ml.c5.xlrage")),
    ("unknown region", job(region="us-east-9")),
    ("not offered", pytorch(P4D, distribution=SMDDP, region="eu-west-3")),
    ("no image", job(framework_version="2.15")),
    ("no image", job(framework_version="3.0.1")),
    ("no Python", job(py_version="py38")),
    (
        "old Python",
        job(framework_version="2.10.1", py_version="py39", script=TRAIN_SCRIPT),
    ),
    ("unresolved image", job(region="eusc-de-east-1")),
    ("unknown key", distribution(horovod={"enabled": True})),
    ("unknown key", distribution(parameter_sever={"enabled": True})),
    ("no dictionary", distribution(mpi=True)),
    ("no dictionary", distribution(smdistributed=True)),
    ("unknown option", job(distribution=mpi(custom_mpi_option="-x A=1"))),
    ("dataparallel", pytorch(P4D, distribution={"smdistributed": {"dataparallel": True}})),
    ("enabled is not True", distribution(parameter_server={"enabled": "true"})),
    ("not enabled", distribution(mpi={"processes_per_host": 2})),
    ("two at once", job(distribution=MPI | SERVERS)),
    ("no process", job(distribution=mpi(processes_per_host=0))),
    ("no process", job(distribution=mpi(processes_per_host="2"))),
    ("too many processes", job(distribution=mpi(processes_per_host=8))),
    ("too many processes", job(G5, distribution=mpi(processes_per_host=4))),
    ("servers for PyTorch", pytorch(distribution=SERVERS)),
    ("servers on one instance", job(distribution=SERVERS, instance_count=1)),
    ("servers and idle GPUs", job(P4D, distribution=SERVERS)),
    ("multi-worker for PyTorch", pytorch(distribution=MULTI_WORKER)),
    (
        "multi-worker, too old",
        job(framework_version="2.8.0", py_version="py39", distribution=MULTI_WORKER),
    ),
    ("no Horovod", job(framework_version="2.14.1", distribution=MPI)),
    ("no Horovod", pytorch(distribution=MPI)),
    ("no Horovod", pytorch(distribution=MPI, script="import horovod.torch as hvd")),
    ("no Horovod", job(framework_version="2.14.1", distribution=MPI, script="import os")),
    (
        "Horovod on CPUs",
        pytorch(
            framework_version="1.13.1",
            py_version="py39",
            distribution=MPI,
            script="import horovod.torch as hvd",
        ),
    ),
    ("NCCL_DEBUG", job(distribution=mpi(custom_mpi_options="--NCCL_DEBUG=INFO"))),
    ("MPI options", job(distribution=mpi(custom_mpi_options=["-x", "A=1"]))),
    ("torchrun for TensorFlow", job(G5, distribution=TORCH)),
    ("torchrun without accelerator", pytorch(distribution=TORCH)),
    (
        "torchrun, not listed",
        pytorch(G5, framework_version="1.12.1", py_version="py38", distribution=TORCH),
    ),
    ("Trainium", pytorch(NEURON, distribution=MPI)),
    ("SMDDP on CPUs", pytorch(distribution=SMDDP)),
    ("SMDDP on P3", pytorch(distribution=SMDDP, instance_type="ml.p3dn.24xlarge")),
    ("SMDDP on P5", pytorch(distribution=SMDDP, instance_type="ml.p5.48xlarge")),
    ("SMDDP on other types", pytorch(G5, distribution=SMDDP)),
    ("SMDDP, TensorFlow too new", job(P4D, distribution=SMDDP)),
    (
        "SMDDP, not listed",
        pytorch(P4D, framework_version="2.4.0", py_version="py311", distribution=SMDDP),
    ),
    (
        "SMDDP, PyTorch too new",
        pytorch(P4D, framework_version="2.6.0", py_version="py312", distribution=SMDDP),
    ),
    (
        "SMDDP by torchrun",
        pytorch(P4D, distribution=TORCH, script='init_process_group("smddp")'),
    ),
    ("spot without checkpoints", job(SPOT, checkpoint_s3_uri="")),
    ("subnets without groups", job(subnets=("subnet-a",))),
    ("groups without subnets", job(security_group_ids=("sg-a",))),
    ("EFA over subnets", pytorch(P4D, VPC, distribution=SMDDP, subnets=("subnet-a", "subnet-b"))),
]
# rule -> what its finding says of the first job above, beyond its fixed words
SAYS = {
    "EC2 type": 'Write "ml.m5.xlarge"',
    "unknown type": "Did you mean ml.c5.xlarge",
    "unknown region": "Did you mean us-east-",
    "not offered": "us-west-2",
    "no image": "newest that it knows is 2.1",
    "no Python": "'py310'",
    "old Python": "needs Python 3.10; the image of tensorflow 2.10.1 has 3.9",
    "unresolved image": "Unsupported region",
    "unknown key": 'Did you mean "mpi"?',
    "no dictionary": 'Write {"mpi": {"enabled": True}}',
    "unknown option": 'Did you mean "custom_mpi_options"?',
    "not enabled": "mpi is given but not enabled",
    "two at once": "mpi and parameter_server are enabled",
    "too many processes": "ml.c5.xlarge has 4 vCPUs",
    "servers and idle GPUs": "7 of the 8 GPUs",
    "multi-worker, too old": "2.9 or newer, not 2.8.0",
    "no Horovod": 'would fail in 2.14.1. Write framework_version="2.12.0"',
    "torchrun, not listed": "1.13.1",
    "SMDDP on P5": "Take ml.p4d.24xlarge or ml.p4de.24xlarge; on P5",
    "SMDDP, TensorFlow too new": 'framework_version="2.11.0"',
    "SMDDP, not listed": "its list ends at 2.2.0",
    "SMDDP, PyTorch too new": "2.6.0's image has no SMDDP; the last with it is 2.5.1",
    "EFA over subnets": "2 subnets may be in several",
}
