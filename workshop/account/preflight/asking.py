"""What only AWS knows: quotas, subnets, groups. Reads, and never makes anything."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from botocore.exceptions import BotoCoreError, ClientError

from workshop.account.preflight.facts import Finding, bad, facts, unknown
from workshop.account.preflight.job import JobConfiguration

ALL_INSTANCES = "Number of instances across all training jobs"
INCREASE = (
    "Request an increase: Service Quotas, Amazon SageMaker, the quota's name. Small increases are "
    "often granted within a day (12 to 24 hours were reported for SageMaker); for large GPU types "
    "reckon with longer, and with a refusal."
)
_read: WeakKeyDictionary = WeakKeyDictionary()  # session -> quota name -> value


def ask(job: JobConfiguration, session) -> list[Finding]:
    """What AWS, or the emulator, says about a job. Nothing is made.

    session: what workshop.session returned; its region must be the job's.

    A question that gets no answer (no permission, no network, a service that the emulator
    does not have) becomes a finding with ok=None that says so.
    """
    findings: list[Finding] = []
    for topic, question in {"quota": quota, "network": network}.items():
        try:
            findings += question(job, session)
        except (ClientError, BotoCoreError) as error:
            findings.append(unknown(topic, _refusal_reason(error)))
    return findings


def quota(job: JobConfiguration, session) -> Iterator[Finding]:
    """The quotas of the type, and of all instances of the account together.

    Service Quotas does not say whether other jobs are using part of them now.
    """
    quotas = all_quotas(session)
    if not quotas:
        yield unknown("quota", "Service Quotas lists no quota of SageMaker here.")
        return
    usage = "spot training job usage" if job.use_spot else "training job usage"
    for name in [f"{job.instance_type} for {usage}", *({ALL_INSTANCES} & quotas.keys())]:
        yield _enough(quotas, name, job)


def _enough(quotas: dict[str, float], name: str, job: JobConfiguration) -> Finding:
    """Whether a quota is there, and large enough."""
    need, region = job.instance_count, job.region
    allowed = quotas.get(name)
    if allowed is None:
        return bad(
            "quota",
            f'Service Quotas has no "{name}" in {region}: SageMaker does not seem to '
            f"offer {name.split()[0]} there.",
            "Take another region or another type.",
            "region-message",
        )
    if allowed < need:
        reason = f'The quota "{name}" is {allowed:g} in {region}; this job takes {need}.'
        return bad("quota", reason, INCREASE, "quota-wait")
    return Finding("quota", True, f'"{name}" is {allowed:g}; this job takes {need}.')


def network(job: JobConfiguration, session) -> Iterator[Finding]:
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
        reason = f"{error.response['Error']['Message']} (asked in {job.region})"
        yield bad("network", reason, "Give ids that exist in this region.")
        return
    objections = list(_objections(job, subnets, groups["SecurityGroups"]))
    free, zones = _free(subnets), ", ".join(_zones(subnets))
    good = f"{free} free addresses in {zones}; the groups let their members reach each other."
    yield from objections or [Finding("network", True, good)]


def _objections(
    job: JobConfiguration, subnets: list[dict], groups: list[dict]
) -> Iterator[Finding]:
    """Too few addresses, EFA over two zones, security groups that keep the ranks apart."""
    several, count = job.instance_count > 1, job.instance_count
    each = facts()["addresses"]["with_efa" if job.efa else "without_efa"]
    if _free(subnets) < each * count:
        yield bad(
            "network",
            f"{', '.join(job.subnets)} has {_free(subnets)} free addresses; {count} instances "
            f"need {each} each.",
            "Give a larger subnet, or free addresses in this one.",
            "train-vpc",
        )
    if several and job.efa and len(_zones(subnets)) > 1:
        yield bad(
            "network",
            f"The subnets are in {', '.join(_zones(subnets))}, and EFA does not reach from one "
            "availability zone to another.",
            "Give subnets of one zone.",
            "efa",
        )
    elsewhere = {group["GroupId"]: group.get("VpcId") for group in groups}
    vpcs = {subnet["VpcId"] for subnet in subnets}
    if wrong := [group for group, vpc in elsewhere.items() if vpc not in vpcs]:
        yield bad(
            "network",
            f"{', '.join(wrong)} is in another VPC than the subnets.",
            "Give groups of the subnets' own VPC.",
        )
    elif several and not any(_open_to_itself(group, "IpPermissions") for group in groups):
        yield bad(
            "network",
            f"No rule of {', '.join(job.security_group_ids)} lets the group's own members in on "
            "every port: the ranks would wait for each other until max_run.",
            "Add an inbound rule: all traffic, source the group itself.",
        )
    elif several and job.efa and not any(map(_open_both_ways, groups)):
        yield bad(
            "network",
            f"No rule of {', '.join(job.security_group_ids)} lets traffic out to the group itself, "
            "as EFA needs: the ranks would wait for each other until max_run.",
            "Add an outbound rule: all traffic, destination the group itself.",
            "efa-group",
        )


def _free(subnets: list[dict]) -> int:
    return sum(subnet["AvailableIpAddressCount"] for subnet in subnets)


def _zones(subnets: list[dict]) -> list[str]:
    return sorted({subnet["AvailabilityZone"] for subnet in subnets})


def _open_both_ways(group: dict) -> bool:
    return all(_open_to_itself(group, way) for way in ("IpPermissions", "IpPermissionsEgress"))


def _open_to_itself(group: dict, way: str) -> bool:
    """Whether a rule allows all traffic between the group's own members."""
    return any(
        rule["IpProtocol"] == "-1"
        and any(pair.get("GroupId") == group["GroupId"] for pair in rule["UserIdGroupPairs"])
        for rule in group[way]
    )


def all_quotas(session) -> dict[str, float]:
    """Quota name -> value: AWS's defaults, and over them what the account has."""
    if session not in _read:
        client = session.client("service-quotas")
        values: dict[str, float] = {}
        for operation in ("list_aws_default_service_quotas", "list_service_quotas"):
            for page in client.get_paginator(operation).paginate(ServiceCode="sagemaker"):
                values |= {quota["QuotaName"]: quota["Value"] for quota in page["Quotas"]}
        _read[session] = values
    return _read[session]


def _refusal_reason(error: Exception) -> str:
    if not isinstance(error, ClientError):
        return f"{error}."
    code, operation = error.response["Error"].get("Code", ""), error.operation_name
    if "AccessDenied" in code or "Unauthorized" in code or code == "NotAuthorized":
        return f"your credentials may not call {operation} ({code})."
    return f"{operation} answered {code}: {error.response['Error'].get('Message', '')}"
