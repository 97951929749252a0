"""Each strategy has its framework, its versions and its instance types."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import Version

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts
from workshop.preflight.finding import Finding, bad
from workshop.preflight.rules import smddp
from workshop.preflight.rules.images import version
from workshop.preflight.rules.keys import enabled, well_formed
from workshop.preflight.rules.resources import places

WHAT = "strategy"
ACCELERATED = ("p", "g", "trn")  # families of instances with GPUs or Trainium chips


def describe(job: JobConfiguration) -> str:
    """That framework, version and instance type suit the strategy."""
    if not (found := sorted(enabled(job))):
        return "Nothing to check without a distribution."
    what = job.image_uri or f"{job.framework} {job.framework_version}"
    return f"{' and '.join(found)} goes together with {what} and {job.instance_type}."


def check(job: JobConfiguration) -> Iterator[Finding]:
    """What does not go together, for every strategy that is enabled."""
    if not well_formed(job):
        return
    on = enabled(job)
    rules = {
        "parameter_server": _parameter_server,
        "multi_worker_mirrored_strategy": _multi_worker,
        "mpi": _mpi,
        "torch_distributed": _torch_distributed,
        "smdistributed": smddp.check,
        "pytorchddp": smddp.check,
    }
    for name in sorted(on):
        yield from rules[name](job)
    family = _family(job)
    if family.startswith("trn") and on - {"torch_distributed"}:
        yield bad(
            WHAT,
            f"{job.instance_type} has Trainium chips, which only torch_distributed can use.",
            'Write {"torch_distributed": {"enabled": True}}, or take a GPU type.',
            "sdk-versions",
        )


def _family(job: JobConfiguration) -> str:
    return job.instance_type.removeprefix("ml.").split(".")[0]


def _parameter_server(job: JobConfiguration) -> Iterator[Finding]:
    if job.framework != "tensorflow":
        yield bad(
            WHAT,
            "parameter_server is TensorFlow's: PyTorch's image starts no servers.",
            'For PyTorch write {"torch_distributed": {"enabled": True}} (on GPU types).',
            "tensorflow-toolkit",
        )
        return
    if job.instance_count == 1:
        yield bad(
            WHAT,
            "parameter_server with 1 instance: servers are started only where there are several "
            "hosts, so the script would find no TF_CONFIG.",
            "Give instance_count=2 or more.",
            "tensorflow-toolkit",
        )
    found = places(job.instance_type)
    if found and found[1] == "GPU" and found[0] > 1:
        yield bad(
            WHAT,
            f"parameter_server starts one worker on each instance, so {found[0] - 1} of the "
            f"{found[0]} GPUs of {job.instance_type} that you pay for would idle.",
            "Take a type with one GPU or none, or mpi with a process for each GPU.",
            "sdk-versions",
        )


def _multi_worker(job: JobConfiguration) -> Iterator[Finding]:
    first = facts()["limits"]["first_multi_worker_mirrored"]
    found = version(job)
    if job.framework != "tensorflow":
        yield bad(
            WHAT,
            "multi_worker_mirrored_strategy is TensorFlow's own; the SDK refuses it for PyTorch.",
            'For PyTorch write {"torch_distributed": {"enabled": True}} (on GPU types).',
            "sdk",
        )
    elif found and found < Version(first):
        yield bad(
            WHAT,
            f"multi_worker_mirrored_strategy needs TensorFlow {first} or newer, not {found}.",
            'Write framework_version="2.14.1", py_version="py310".',
            "sdk",
        )


def _mpi(job: JobConfiguration) -> Iterator[Finding]:
    last, found = facts()["horovod"][job.framework], version(job)
    # mpirun starts other scripts as well: Open MPI and mpi4py are in all of these images.
    torch_alone = job.framework == "pytorch" and job.script and "horovod" not in job.script
    if found and found > Version(last) and not torch_alone:
        remedy = (
            f'Write framework_version="{last}", or give the image_uri of an image with Horovod.'
        )
        if job.framework == "pytorch":
            remedy += " A script that uses torch.distributed alone may be started by mpi."
        yield bad(
            WHAT,
            f"mpi starts Horovod scripts, and AWS's {job.framework} images have no Horovod "
            f"after version {last}: `import horovod` would fail in {found}.",
            remedy,
            "images",
        )
    options = job.distribution["mpi"].get("custom_mpi_options", "")
    if not isinstance(options, str):
        yield bad(
            WHAT,
            f"custom_mpi_options is {options!r}; the toolkit splits a text at its blanks.",
            'Write one text, for example "-x NCCL_DEBUG=INFO".',
            "mpi-toolkit",
        )
    elif "--NCCL_DEBUG" in options:
        yield bad(
            WHAT,
            "--NCCL_DEBUG is no option of mpirun. Only SageMaker's toolkit knows it, and that "
            "sets NCCL_DEBUG=INFO by itself.",
            "Leave it out, or write -x NCCL_DEBUG=INFO, which every mpirun understands.",
            "mpi-toolkit",
        )


def _torch_distributed(job: JobConfiguration) -> Iterator[Finding]:
    if job.framework != "pytorch":
        yield bad(
            WHAT,
            "torch_distributed runs torchrun, which only PyTorch's images have; with "
            "TensorFlow(...) it would start nothing.",
            'For TensorFlow write {"multi_worker_mirrored_strategy": {"enabled": True}}.',
            "sdk-versions",
        )
        return
    if job.image_uri:
        return  # the SDK checks neither type nor version of somebody's own image
    if not _family(job).startswith(ACCELERATED):
        yield bad(
            WHAT,
            f"torch_distributed is refused by the SDK on {job.instance_type}, which has no "
            "accelerator, as long as it chooses the image.",
            "Take a GPU type such as ml.g5.xlarge, or give the image_uri yourself.",
            "sdk-versions",
        )
        return
    from sagemaker import fw_utils  # slow

    if _family(job).startswith("trn"):
        listed = fw_utils.TRAINIUM_SUPPORTED_TORCH_DISTRIBUTED_FRAMEWORK_VERSIONS
    else:
        listed = fw_utils.TORCH_DISTRIBUTED_GPU_SUPPORTED_FRAMEWORK_VERSIONS
    if job.framework_version not in listed:
        yield bad(
            WHAT,
            f"torch_distributed with PyTorch {job.framework_version} is not in the SDK's list.",
            f"Take one of: {', '.join(listed)}.",
            "sdk-versions",
        )
