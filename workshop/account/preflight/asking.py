"""What only AWS knows: quotas, images, subnets, groups. Reads, and never makes anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from botocore.exceptions import BotoCoreError, ClientError

from workshop.account.preflight.facts import Finding, bad, facts, unknown
from workshop.account.preflight.job import JobConfiguration

# account.dkr.ecr.region.domain/repository:tag, or @digest in the place of the tag
ADDRESS = re.compile(
    r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[a-z.]+/"
    r"(?P<repository>[a-z0-9._/-]+)(?::(?P<tag>[\w.-]+)|@(?P<digest>sha256:[0-9a-f]{64}))"
)
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
    for topic, question in {"quota": quota, "image": image, "network": network}.items():
        try:
            findings += question(job, session)
        except (ClientError, BotoCoreError) as error:
            findings.append(unknown(topic, _refusal_reason(error)))
    return findings


def quota(job: JobConfiguration, session) -> Iterator[Finding]:
    """The quotas of the type, of its warm pools, and of all instances of the account together.

    Service Quotas does not say whether other jobs are using part of them now.
    """
    quotas = all_quotas(session)
    if not quotas:
        yield unknown("quota", "Service Quotas lists no quota of SageMaker here.")
        return
    usages = ["spot training job usage" if job.use_spot else "training job usage"]
    usages += ["training warm pool usage"] * bool(job.keep_alive)
    names = [f"{job.instance_type} for {usage}" for usage in usages]
    for name in [*names, *({ALL_INSTANCES} & quotas.keys())]:
        yield _enough(quotas, name, job.instance_count, job.region, "this job takes")


def serving(instance_type: str, session) -> list[Finding]:
    """Whether one instance of a type may serve: as an endpoint, and in a batch transform."""
    try:
        quotas = all_quotas(session)
    except (ClientError, BotoCoreError) as error:
        return [unknown("quota", _refusal_reason(error))]
    if not quotas:
        return [unknown("quota", "Service Quotas lists no quota of SageMaker here.")]
    return [
        _enough(quotas, f"{instance_type} for {usage}", 1, session.region, "this lesson takes")
        for usage in ("endpoint usage", "transform job usage")
    ]


def _enough(quotas: dict[str, float], name: str, need: int, region: str, who: str) -> Finding:
    """Whether a quota is there, and large enough."""
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
        reason = f'The quota "{name}" is {allowed:g} in {region}; {who} {need}.'
        return bad("quota", reason, INCREASE, "quota-wait")
    return Finding("quota", True, f'"{name}" is {allowed:g}; {who} {need}.')


def image(job: JobConfiguration, session) -> Iterator[Finding]:
    """Whether the job's image exists. AWS's own registries may refuse to say."""
    if session.target == "local" and not job.image_uri:
        yield unknown("image", "the emulator pulls no image, and so knows of none of AWS's.")
        return
    try:
        address = job.image
    except ValueError:
        return  # there is a finding about that already
    parts = ADDRESS.fullmatch(address)
    if parts is None:
        yield unknown("image", f"{address} is not an address in ECR.")
        return
    which = {"imageTag": parts["tag"]} if parts["tag"] else {"imageDigest": parts["digest"]}
    ecr = session.boto_session.client("ecr", region_name=parts["region"])
    try:
        ecr.describe_images(
            registryId=parts["account"], repositoryName=parts["repository"], imageIds=[which]
        )
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code not in ("RepositoryNotFoundException", "ImageNotFoundException"):
            raise
        yield bad(
            "image",
            f"ECR has no {address} ({code}).",
            "Check name and tag; build and push an image of your own first.",
        )
        return
    yield Finding("image", True, f"{address} is in its registry.")


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
