"""A SageMaker job's evidence: its description, its log, and on the emulator its recorded ranks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

import local_sagemaker
from workshop.diagnosis.evidence import Evidence, NoEvidence
from workshop.diagnosis.reading import read_record
from workshop.jobs.follow import FINAL
from workshop.jobs.logs import LogReader

# What makes the next job tell more; on AWS only its log can be read.
ADVICE = (
    "a log alone tells little of a hang. For the next job set in `environment`: "
    'TORCH_FR_BUFFER_SIZE="2000", TORCH_NCCL_DUMP_ON_TIMEOUT="1", NCCL_DEBUG="INFO", and pass a '
    "timeout to init_process_group; faulthandler.dump_traceback_later(600, repeat=True) prints "
    "each rank's stack; enable_remote_debug=True gives a shell."
)
DENIED = ("AccessDenied", "AccessDeniedException")


def read_job(job: Any, session=None) -> Evidence:
    """The evidence of an estimator's last job, or of a job's name. Raises NoEvidence."""
    name, client = _resolve(job, session)
    try:
        description = client("sagemaker").describe_training_job(TrainingJobName=name)
        lines = LogReader(client("logs"), name).new_lines()
    except (ClientError, BotoCoreError) as error:
        code = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
        remedy = (
            "It may be another seat's: ask as that seat (--seat), or whoever started it."
            if code in DENIED
            else "`workshop jobs` lists the emulator's; `--target aws` asks AWS. A folder is "
            "written with a slash."
        )
        raise NoEvidence(f"Job {name}: {error}. {remedy}") from error
    evidence = _read_ranks(name, description.get("Environment", {}))
    evidence.lines, evidence.description = lines, description
    evidence.running = description["TrainingJobStatus"] not in FINAL
    return evidence


def _read_ranks(name: str, environment: dict) -> Evidence:
    """What the ranks of a job of the emulator have noted; the request names their folder."""
    if folder := environment.get("WORKSHOP_RECORD"):
        try:
            return read_record(Path(folder), name)
        except NoEvidence as error:  # none has joined the others yet, or it is another user's
            return Evidence(name, problems=[str(error)])
    return Evidence(name)


def _resolve(job: Any, session) -> tuple[str, Any]:
    """The job's name, and what makes clients."""
    if not isinstance(job, str):
        latest = getattr(job, "latest_training_job", None)
        if latest is None:
            raise NoEvidence("This estimator has no job yet: call its fit(..., wait=False) first.")
        return latest.name, job.sagemaker_session.boto_session.client
    if session is not None:
        return job, session.client
    try:
        local_sagemaker.client("sagemaker")
    except local_sagemaker.EmulatorError as error:
        raise NoEvidence(f"{error} Without it only recorded ranks can be read.") from error
    return job, local_sagemaker.client
