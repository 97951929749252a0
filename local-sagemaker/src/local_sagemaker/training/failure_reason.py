"""FailureReason, in AWS's words."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from local_sagemaker.core.records import REASON_LIMIT, shorten
from local_sagemaker.storage.files import open_below

SIGKILL_CODE = 137
READ_LIMIT = 4096  # bytes of either end of the file


# What a script meets here and not on AWS -> what to do. The first match begins the reason.
HINTS = (
    (
        r"https://sts\.[\w.-]*amazonaws\.com",
        "account_id() asks AWS's STS at a fixed address, which cannot be led here, and so does "
        "get_execution_role() without namespaces: take the account from the variable "
        "TRAINING_JOB_ARN, and write the role's ARN",
    ),
    (
        r"(?:No matching distribution found for|\(constraint\)) torch(?:vision|audio)==\S+\+cpu",
        "this machine's torch is built without CUDA, and the package index has no torchvision and "
        "torchaudio of that kind: name PyTorch's own index for CPUs in requirements.txt "
        "(--extra-index-url ...)",
    ),
    (
        r"File system scheme 's3' not implemented",
        "this machine's TensorFlow has no tensorflow-io, and so no s3:// paths: save to "
        "SM_MODEL_DIR, read from SM_CHANNEL_..., and copy with boto3 what is elsewhere",
    ),
    (
        r"KeyError: 'AWS_CONTAINER_CREDENTIALS_RELATIVE_URI'",
        "an instance's keys are in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY here",
    ),
    (r"torchvision::nms does not exist", "this torchvision is built for another torch"),
    (
        r"Extension horovod\.torch has not been built|module 'horovod\.torch' has no attribute",
        "this machine's Horovod is built without PyTorch: use torch's DistributedDataParallel, or "
        "horovod.tensorflow",
    ),
    (
        r"No module named 'smdistributed[\w.]*'",
        "two of SMDDP's modules have a stand-in here: smdistributed.dataparallel.tensorflow, and "
        "smdistributed.dataparallel.torch.torch_smddp, a backend of torch.distributed",
    ),
    (
        r"NameResolutionError|[Nn]ame resolution|Name or service not known|not resolve host",
        "names of the internet do not resolve on an instance: HTTPS goes through the proxy that "
        "the variable HTTPS_PROXY names, and nothing else does; without that variable the job's "
        "VpcConfig or EnableNetworkIsolation keeps it from the internet",
    ),
    (
        r"Tunnel connection failed: (502|403)",
        "this machine, which is a job's way to the internet, answered {}: it reaches no such "
        "address (502), or it is closed to jobs (403), which reach ports 80 and 443 of public "
        "addresses only",
    ),
    (
        r"ModuleNotFoundError: No module named '([\w.]+)'",
        "no image is pulled, and this machine's environment lacks {}: name its package in a "
        "requirements.txt beside the script",
    ),
)


def failure_reason(opt_ml: Path, code: int) -> str:
    """Why an instance failed. opt_ml: its /opt/ml. code: its exit code.

    The toolkit writes what it knows into /opt/ml/output/failure; without that file only
    the exit code is known.
    """
    text = ""
    with contextlib.suppress(OSError):  # there is none, or it is a link that leads elsewhere
        with open(open_below(opt_ml, opt_ml / "output" / "failure"), "rb") as stream:
            raw = stream.read(READ_LIMIT)
            if (rest := os.fstat(stream.fileno()).st_size - READ_LIMIT) > 0:
                stream.seek(rest)  # a script may have written gigabytes
                raw += b"\n...\n" + stream.read(READ_LIMIT)
        text = raw.decode("utf-8", "replace").strip()
    if not text and code == SIGKILL_CODE:
        text = "The instance was killed (SIGKILL): it may have run out of memory"
    elif not text:
        text = "Please see job logs for more information"
    tail, hint = f", exit code: {code}", ""
    for pattern, advice in HINTS:
        if match := re.search(pattern, text):
            hint = f"[local] {advice.format(*match.groups())}.\n"
            break
    return f"AlgorithmError: {hint}{shorten(text, REASON_LIMIT - len(tail) - len(hint) - 16)}{tail}"
