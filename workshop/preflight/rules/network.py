"""Subnets and security groups, as far as they can be judged without asking AWS."""

from __future__ import annotations

from collections.abc import Iterator

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts, most
from workshop.preflight.finding import Finding, bad

WHAT = "network"


def describe(job: JobConfiguration) -> str:
    """Where the instances are."""
    if not job.subnets:
        return "SageMaker's own network."
    return f"{', '.join(job.subnets)} with {', '.join(job.security_group_ids)}."


def check(job: JobConfiguration) -> Iterator[Finding]:
    """Half a VPC, too many ids, and instances with EFA in several subnets."""
    if job.subnets and not job.security_group_ids:
        yield bad(
            WHAT,
            "subnets is given without security_group_ids: the SDK would send no VPC at all, and "
            "the job would run outside your network.",
            "Give both. The group must let its own members reach each other on every port.",
            "sdk-vpc",
        )
    if job.security_group_ids and not job.subnets:
        yield bad(
            WHAT,
            "security_group_ids is given without subnets: the SDK would leave out the groups "
            "without a word.",
            "Give both, or neither.",
            "sdk-vpc",
        )
    for name, member in (("subnets", "Subnets"), ("security_group_ids", "SecurityGroupIds")):
        if len(getattr(job, name)) > most(member):
            yield bad(
                WHAT,
                f"{len(getattr(job, name))} {name}; CreateTrainingJob takes {most(member)}.",
                "One subnet is best: then all instances are in one availability zone.",
                "api",
            )
    efa = job.instance_type in facts()["efa"]["types"]
    if efa and job.instance_count > 1 and len(set(job.subnets)) > 1:
        yield bad(
            WHAT,
            f"{job.instance_type} talks to its peers over EFA, which does not reach from one "
            f"availability zone to another; {len(set(job.subnets))} subnets may be in several.",
            "Give one subnet.",
            "efa",
        )
