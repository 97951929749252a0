"""Spot instances and warm pools: which requests for them CreateTrainingJob refuses.

Spot instances are taken away only on request (jobs/spot.py). Nothing is kept warm here.
"""

from __future__ import annotations

from local_sagemaker.jobs.spot import DAY
from local_sagemaker.server.errors import validation


def check(request: dict) -> None:
    """Raise AwsError (ValidationException) for a request that contradicts itself."""
    stopping = request.get("StoppingCondition") or {}
    spot = request.get("EnableManagedSpotTraining") or False
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
