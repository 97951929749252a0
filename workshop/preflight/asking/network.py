"""Do the subnets and the groups exist, have they room, do they let the instances meet?"""

from __future__ import annotations

from collections.abc import Iterator

from botocore.exceptions import ClientError

from workshop.preflight.configuration import JobConfiguration
from workshop.preflight.facts import facts
from workshop.preflight.finding import Finding, bad

WHAT = "network"


def check_network(job: JobConfiguration, session) -> Iterator[Finding]:
    """Nothing for a job without a VPC; else its subnets and security groups."""
    if not (job.subnets and job.security_group_ids):
        return
    ec2 = session.client("ec2")
    try:
        subnets = ec2.describe_subnets(SubnetIds=list(job.subnets))["Subnets"]
        groups = ec2.describe_security_groups(GroupIds=list(job.security_group_ids))
    except ClientError as error:
        if not error.response["Error"]["Code"].endswith(".NotFound"):
            raise
        yield bad(
            WHAT,
            f"{error.response['Error']['Message']} (asked in {job.region})",
            "Give ids that exist in this region.",
        )
        return
    found = [
        *_room(job, subnets),
        *_zones(job, subnets),
        *_groups(job, groups["SecurityGroups"], {one["VpcId"] for one in subnets}),
    ]
    yield from found or [Finding(WHAT, True, _seen(subnets))]


def _seen(subnets: list[dict]) -> str:
    free = sum(one["AvailableIpAddressCount"] for one in subnets)
    zones = ", ".join(sorted({one["AvailabilityZone"] for one in subnets}))
    return f"{free} free addresses in {zones}; the groups let their members reach each other."


def _room(job: JobConfiguration, subnets: list[dict]) -> Iterator[Finding]:
    free = sum(one["AvailableIpAddressCount"] for one in subnets)
    efa = job.instance_type in facts()["efa"]["types"]
    each = facts()["addresses"]["with_efa" if efa else "without_efa"]
    if free < each * job.instance_count:
        yield bad(
            WHAT,
            f"{', '.join(job.subnets)} has {free} free addresses; {job.instance_count} instances "
            f"need {each} each.",
            "Give a larger subnet, or free addresses in this one.",
            "train-vpc",
        )


def _zones(job: JobConfiguration, subnets: list[dict]) -> Iterator[Finding]:
    zones = sorted({one["AvailabilityZone"] for one in subnets})
    if len(zones) > 1 and job.instance_count > 1 and job.instance_type in facts()["efa"]["types"]:
        yield bad(
            WHAT,
            f"The subnets are in {', '.join(zones)}, and EFA does not reach from one availability "
            "zone to another.",
            "Give subnets of one zone.",
            "efa",
        )


def _groups(job: JobConfiguration, groups: list[dict], vpcs: set[str]) -> Iterator[Finding]:
    strange = [one["GroupId"] for one in groups if one.get("VpcId") not in vpcs]
    if strange:
        yield bad(
            WHAT,
            f"{', '.join(strange)} is in another VPC than the subnets.",
            "Give groups of the subnets' own VPC.",
        )
    elif job.instance_count > 1 and not any(map(_lets_members_in, groups)):
        yield bad(
            WHAT,
            f"No rule of {', '.join(job.security_group_ids)} lets the group's own members in on "
            "every port: the ranks would wait for each other until max_run.",
            "Add an inbound rule: all traffic, source the group itself.",
        )


def _lets_members_in(group: dict) -> bool:
    """Whether a rule allows all traffic from the group itself."""
    return any(
        rule["IpProtocol"] == "-1"
        and any(one.get("GroupId") == group["GroupId"] for one in rule["UserIdGroupPairs"])
        for rule in group["IpPermissions"]
    )
