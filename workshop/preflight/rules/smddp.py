"""SageMaker's own data parallel library (SMDDP): few types, few versions."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts
from workshop.preflight.finding import Finding, bad
from workshop.preflight.rules.images import version
from workshop.preflight.rules.resources import places

WHAT = "strategy"


def check(job: JobConfiguration) -> Iterator[Finding]:
    """A type that SMDDP does not run on, and a version that it does not exist for."""
    yield from _type(job)
    if job.image_uri:
        return
    if job.framework == "tensorflow":
        yield from _tensorflow(job)
    else:
        yield from _pytorch(job)


def _type(job: JobConfiguration) -> Iterator[Finding]:
    types = facts()["smddp"]["types"]
    if job.instance_type in types:
        return
    remedy = f"Take {' or '.join(types)}"
    if job.instance_type.startswith("ml.p5"):
        yield bad(
            WHAT,
            f"SMDDP does not support P5, so not {job.instance_type} either.",
            f"{remedy}; on P5 use torch_distributed with the backend nccl.",
            "smddp-p5",
        )
    elif job.instance_type.startswith("ml.p3"):
        yield bad(
            WHAT,
            f"SMDDP has given up P3 ({job.instance_type}), though the SDK's list still has it.",
            f"{remedy}.",
            "smddp-p3",
        )
    elif (found := places(job.instance_type)) and found[1] == "vCPU":
        yield bad(
            WHAT,
            f"SMDDP moves gradients between GPUs; {job.instance_type} has none. The SDK would "
            "send the job all the same.",
            f"{remedy}, or for CPUs mpi.",
            "smddp",
        )
    else:
        yield bad(
            WHAT,
            f"SMDDP runs on {' and '.join(types)} only, not on {job.instance_type}.",
            f"{remedy}, or use torch_distributed with the backend nccl.",
            "smddp",
        )


def _tensorflow(job: JobConfiguration) -> Iterator[Finding]:
    last, found = facts()["smddp"]["last_tensorflow"], version(job)
    if found and found > Version(last):
        yield bad(
            WHAT,
            f"SMDDP has left TensorFlow: {last} was the last version with it, not {found}.",
            f'Write framework_version="{last}", or use mpi (up to 2.12.0), or PyTorch.',
            "smddp",
        )


def _pytorch(job: JobConfiguration) -> Iterator[Finding]:
    from sagemaker import fw_utils  # slow

    listed = fw_utils.SM_DATAPARALLEL_SUPPORTED_FRAMEWORK_VERSIONS["pytorch"]
    last, found = facts()["smddp"]["last_pytorch_image"], version(job)
    if found and found > Version(last):
        yield bad(
            WHAT,
            f"PyTorch {found}'s image has no SMDDP; the last with it is {last}.",
            f"Take {last} with torch_distributed, and in the script the backend smddp.",
            "smddp",
        )
    elif job.framework_version not in listed:
        yield bad(
            WHAT,
            f"The SDK refuses smdistributed with PyTorch {job.framework_version}: its list ends "
            f"at {listed[-1]}.",
            f"Take {listed[-1]}; up to {last} torch_distributed works, with the backend smddp.",
            "sdk-versions",
        )
