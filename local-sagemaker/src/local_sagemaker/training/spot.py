"""Spot instances can be taken away from a job. Here that happens only when somebody asks for it:
`local-sagemaker interrupt JOB`, at once, or when Training begins.

The instances get SIGTERM, their grace period and SIGKILL. Then the job is Interrupted, and starts
again on new instances, with the checkpoints that are in S3:
https://docs.aws.amazon.com/sagemaker/latest/dg/model-managed-spot-training-status.html
(read 2026-11-21).
"""

from __future__ import annotations

from pathlib import Path

from local_sagemaker.protocol.errors import validation

FILE = "interrupt"  # in the job's directory: creating it requests an interruption
BACK_SECONDS = 1.0  # from the loss of the instances until there are others
DAY = 24 * 60 * 60  # seconds; AWS's default for MaxRuntimeInSeconds


def check(request: dict) -> None:
    """Raise AwsError (ValidationException) for a request for spot instances or for a warm pool that
    contradicts itself."""
    spot = request.get("EnableManagedSpotTraining") or False
    stopping = request.get("StoppingCondition") or {}
    longest, wait = stopping.get("MaxRuntimeInSeconds", DAY), stopping.get("MaxWaitTimeInSeconds")
    if not spot and wait is not None:
        # AWS's own words: https://github.com/Kenza-AI/sagify/issues/111, read 2026-11-21
        raise validation(
            "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is "
            "set to true"
        )
    if spot and (wait is None or wait < longest):
        raise validation(
            "Invalid MaxWaitTimeInSeconds. With EnableManagedSpotTraining it must be given, and "
            f"not be below MaxRuntimeInSeconds, which is {longest}."
        )
    if spot and (request.get("ResourceConfig") or {}).get("KeepAlivePeriodInSeconds"):
        raise validation(
            "Invalid KeepAlivePeriodInSeconds. A warm pool cannot be made of spot instances "
            "(EnableManagedSpotTraining)."
        )


def ask(state: Path, job: str) -> None:
    """Ask for the interruption of a job. state: the emulator's directory. Raises OSError."""
    (state / "jobs" / job / FILE).touch()


def taken_away(directory: Path) -> bool:
    """Whether the instances of a job are to be taken away now; each request counts once.

    directory: the job's own.
    """
    try:
        (directory / FILE).unlink()
    except FileNotFoundError:
        return False
    return True


def time_exceeded(request: dict, running: float, since_creation: float) -> str | None:
    """Which limit of StoppingCondition is reached, as a secondary status; None if none is.

    running: seconds with instances. since_creation: seconds, those of waiting for spot
    instances too: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_StoppingCondition.html
    (read 2026-11-21).
    """
    limits = request.get("StoppingCondition") or {}
    over = {  # seconds past the limit: if both are reached, the earlier one counts
        "MaxRuntimeExceeded": running - limits.get("MaxRuntimeInSeconds", DAY),
        "MaxWaitTimeExceeded": since_creation - limits.get("MaxWaitTimeInSeconds", float("inf")),
    }
    first = max(over, key=lambda status: over[status])
    return first if over[first] >= 0 else None
