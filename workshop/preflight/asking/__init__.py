"""What only AWS knows: quotas, images, subnets, groups. Reads, and never makes anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from botocore.exceptions import BotoCoreError, ClientError

from workshop.preflight.asking.image import check_image
from workshop.preflight.asking.network import check_network
from workshop.preflight.asking.quota import check_quota
from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.finding import Finding, unknown

# What is asked, and by whom: each takes the job and the session.
QUESTIONS: dict[str, Callable[[JobConfiguration, object], Iterator[Finding]]] = {
    "quota": check_quota,
    "image": check_image,
    "network": check_network,
}


def ask(job: JobConfiguration, session) -> list[Finding]:
    """What AWS, or the local endpoint, says about a job. Nothing is made.

    session: what workshop.session returned; its region must be the job's.

    A question that gets no answer (no permission, no network, a service that the local endpoint
    does not have) becomes a finding with ok=None that says so.
    """
    findings = []
    for what, question in QUESTIONS.items():
        try:
            findings += question(job, session)
        except (ClientError, BotoCoreError) as error:
            findings.append(unknown(what, _why(error)))
    return findings


def _why(error: Exception) -> str:
    if not isinstance(error, ClientError):
        return f"{error}."
    code, operation = error.response["Error"].get("Code", ""), error.operation_name
    if "AccessDenied" in code or "Unauthorized" in code or code == "NotAuthorized":
        return f"your credentials may not call {operation} ({code})."
    return f"{operation} answered {code}: {error.response['Error'].get('Message', '')}"
