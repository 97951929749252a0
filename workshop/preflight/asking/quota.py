"""Does the account's quota allow so many instances? Service Quotas knows."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.finding import Finding, bad, unknown

WHAT = "quota"
WAIT = (
    "Small increases are often granted within a day (12 to 24 hours were reported for SageMaker); "
    "for large GPU types reckon with longer, and with a refusal"
)
_read: WeakKeyDictionary = WeakKeyDictionary()  # session -> quota name -> value


def check_quota(job: JobConfiguration, session) -> Iterator[Finding]:
    """The quota of the type, and of its warm pools where the job asks for one.

    Whether other jobs use a part of it at this moment, Service Quotas does not say.
    """
    quotas = _quotas(session)
    kind = "spot training job usage" if job.use_spot else "training job usage"
    yield _one(quotas, f"{job.instance_type} for {kind}", job)
    if job.keep_alive:
        yield _one(quotas, f"{job.instance_type} for training warm pool usage", job)


def _one(quotas: dict[str, float], name: str, job: JobConfiguration) -> Finding:
    if not quotas:
        return unknown(WHAT, "Service Quotas lists no quota of SageMaker here.")
    if name not in quotas:
        return bad(
            WHAT,
            f'Service Quotas has no "{name}" in {job.region}: SageMaker does not seem to offer '
            f"{job.instance_type} there.",
            "Take another region or another type.",
            "region-message",
        )
    allowed = quotas[name]
    if allowed < job.instance_count:
        return bad(
            WHAT,
            f'The quota "{name}" is {allowed:g} in {job.region}; this job takes '
            f"{job.instance_count}.",
            f"Request an increase: Service Quotas, Amazon SageMaker, the quota's name. {WAIT}.",
            "quota-wait",
        )
    return Finding(WHAT, True, f'"{name}" is {allowed:g}; this job takes {job.instance_count}.')


def _quotas(session) -> dict[str, float]:
    """Quota name -> value: AWS's defaults, and over them what the account has."""
    if session not in _read:
        client, found = session.client("service-quotas"), {}
        for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
            for page in client.get_paginator(operation).paginate(ServiceCode="sagemaker"):
                found |= {one["QuotaName"]: one["Value"] for one in page["Quotas"]}
        _read[session] = found
    return _read[session]
