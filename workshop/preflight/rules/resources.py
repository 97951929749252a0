"""Instance type, number of instances, region, processes on each instance."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from workshop.account.prices import price_table
from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts, sagemaker_regions, training_types
from workshop.preflight.finding import Finding, bad, unknown
from workshop.preflight.rules.keys import enabled, well_formed

WHAT = "instances"
LOCAL_MODE = ("local", "local_gpu")


def describe(job: JobConfiguration) -> str:
    """What is rented, and where."""
    return f"{job.instance_count} x {job.instance_type} in {job.region}."


def check(job: JobConfiguration) -> Iterator[Finding]:
    """The type, the count, the region, and more processes than an instance has places for."""
    if job.instance_count < 1:
        yield bad(
            WHAT,
            f"instance_count is {job.instance_count}: a job needs an instance to run on.",
            "Give 1 or more.",
        )
    if job.instance_type not in training_types():
        yield _unknown_type(job.instance_type)
    else:
        yield from _region(job)
    if well_formed(job) and "mpi" in enabled(job):
        yield from _processes(job)


def places(instance_type: str) -> tuple[int, str] | None:
    """How many processes an instance has a GPU or else a vCPU for, and which of the two.

    None if the kit does not know the type's hardware.
    """
    row = price_table()["instances"].get(instance_type)
    if row is None:
        return None
    return (row["gpus"], "GPU") if row["gpus"] else (row["vcpus"], "vCPU")


def _unknown_type(name: str) -> Finding:
    if name in LOCAL_MODE:
        return bad(
            WHAT,
            f'"{name}" is the SDK\'s local mode, which needs Docker and is no instance type.',
            'Keep the type and open the session with target="local".',
            "sdk",
        )
    if f"ml.{name}" in training_types():
        return bad(
            WHAT,
            f'"{name}" is a type of EC2. SageMaker\'s own names begin with "ml.".',
            f'Write "ml.{name}".',
            "api",
        )
    near = difflib.get_close_matches(name, training_types(), n=3)
    hint = f"Did you mean {' or '.join(near)}?" if near else "For example: ml.c5.xlarge."
    return bad(WHAT, f'SageMaker trains on no instance type "{name}".', hint, "api")


def _region(job: JobConfiguration) -> Iterator[Finding]:
    if job.region not in sagemaker_regions():
        near = difflib.get_close_matches(job.region, sorted(sagemaker_regions()), n=1)
        hint = f"Did you mean {near[0]}?" if near else "For example: us-east-1."
        yield bad(WHAT, f'SageMaker has no region "{job.region}".', hint, "regions")
        return
    regions = facts()["regions"]
    offered = regions.get(job.instance_type)
    if offered is not None and job.region in regions["recorded"] and job.region not in offered:
        yield bad(
            WHAT,
            f"The region {job.region} does not have {job.instance_type}. SageMaker would answer "
            "that the resource is not available in this region.",
            f"Take one of: {', '.join(offered)}.",
            "ec2-offerings",
        )


def _processes(job: JobConfiguration) -> Iterator[Finding]:
    wanted = job.distribution["mpi"].get("processes_per_host", 1)
    if not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1:
        yield bad(
            "processes",
            f"processes_per_host is {wanted!r}: on each instance mpirun starts 1 process or more.",
            "Give a whole number from 1.",
        )
        return
    found = places(job.instance_type)
    if found is None:
        if wanted > 1 and job.instance_type in training_types():
            yield unknown(
                "processes",
                f"how many GPUs and vCPUs {job.instance_type} has is not in prices.toml.",
                f"Make sure that it has at least {wanted}.",
            )
    elif wanted > found[0]:
        yield bad(
            "processes",
            f"processes_per_host is {wanted}, but {job.instance_type} has {found[0]} {found[1]}"
            f"{'s' if found[0] > 1 else ''}: some processes would have to share one.",
            f"Give {found[0]} at most.",
            "ec2-types",
        )
