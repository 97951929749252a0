"""What AWS asks of policies for a call: actions on resources, with condition keys.

The resources and keys of each action are those of AWS's Service Authorization Reference
(https://docs.aws.amazon.com/service-authorization/latest/reference/, as in parliament 1.6.4); the
ARN that CloudWatch Logs asks for is that of its own refusals
(https://github.com/aws-solutions/instance-scheduler-on-aws/issues/578). Read 2026-11-22.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from policy_evaluator import Request

REGION, ACCOUNT = "us-east-1", "123456789012"
SAGEMAKER = f"arn:aws:sagemaker:{REGION}:{ACCOUNT}"
LOGS = f"arn:aws:logs:{REGION}:{ACCOUNT}:log-group"
VERBS = re.compile(r"(Create|Describe|Delete|Stop|Start|Update|List)([A-Z]\w*)")
S3_ACTIONS = {  # an operation -> its action, where it has another name
    "CompleteMultipartUpload": "PutObject",
    "CreateMultipartUpload": "PutObject",
    "UploadPart": "PutObject",
    "HeadObject": "GetObject",
    "HeadBucket": "ListBucket",
    "ListObjects": "ListBucket",
    "ListObjectsV2": "ListBucket",
    "ListObjectVersions": "ListBucketVersions",
    "ListMultipartUploads": "ListBucketMultipartUploads",
    "DeleteObjects": "DeleteObject",
    "ListBuckets": "ListAllMyBuckets",
}
# Services whose actions here know no resources; their names in policies.
WITHOUT_RESOURCES = {"ec2": "ec2", "sts": "sts", "service-quotas": "servicequotas"}


@dataclass(frozen=True)
class Call:
    """A call as botocore makes it. cell: of the notebook that made it, the number in brackets."""

    service: str
    operation: str
    request: dict[str, Any]
    cell: int | None = None


def read(path: Path) -> list[Call]:
    """The calls that were recorded in a file, in their order."""
    return [Call(**json.loads(line)) for line in path.read_text().splitlines()]


@dataclass
class World:
    """What stands, as far as policies ask for it. tags: ARN -> the tags of a resource."""

    tags: dict[str, dict[str, str]] = field(default_factory=dict)

    def permissions_for(self, call: Call) -> list[Request]:
        """The requests that must all be allowed for a call; then the world is as after it."""
        by_service = {
            "sagemaker": self._sagemaker,
            "sagemaker-runtime": self._runtime,
            "s3": _s3,
            "logs": _logs,
            "cloudformation": _cloudformation,
            "ecr": _ecr,
        }
        if call.operation == "GetCallerIdentity":
            return []  # STS's API reference: "No permissions are required"
        if call.service in WITHOUT_RESOURCES:
            name = f"{WITHOUT_RESOURCES[call.service]}:{call.operation}"
            return [Request(name, "*")]
        if call.service not in by_service:
            raise NotImplementedError(f"calls of {call.service}: {call.operation}")
        return list(by_service[call.service](call))

    def request(self, action: str, resource: str, **context: Any) -> Request:
        """A request with the tags that the resource has. context: other keys, "__" for ":"."""
        tag_values = {
            f"aws:ResourceTag/{key}": row for key, row in self.tags.get(resource, {}).items()
        }
        given = {key.replace("__", ":"): value for key, value in context.items()}
        return Request(action, resource, tag_values | given)

    def _runtime(self, call: Call) -> Iterator[Request]:
        arn = f"{SAGEMAKER}:endpoint/{call.request['EndpointName'].lower()}"
        yield self.request("sagemaker:InvokeEndpoint", arn)

    def _sagemaker(self, call: Call) -> Iterator[Request]:
        action, sent = f"sagemaker:{call.operation}", call.request
        if call.operation in ("AddTags", "ListTags", "DeleteTags"):
            yield self._tagged(action, sent["ResourceArn"], tags_of(sent))
            return
        verb, word = VERBS.fullmatch(call.operation).groups()
        if verb == "List":
            yield Request(action, "*")
            return
        arn = f"{SAGEMAKER}:{_kind(word)}/{sent[f'{word}Name'].lower()}"
        if verb != "Create":
            yield self.request(action, arn)
            if verb == "Delete":
                self.tags.pop(arn, None)
            return
        tags, context = tags_of(sent), _limits(sent)
        yield self._tagged(action, arn, tags, **context)
        if call.operation == "CreateEndpoint":
            config = f"{SAGEMAKER}:endpoint-config/{sent['EndpointConfigName'].lower()}"
            yield self._tagged(action, config, tags)
        if tags:
            yield self._tagged("sagemaker:AddTags", arn, tags, sagemaker__TaggingAction=verb + word)
        if role := sent.get("RoleArn") or sent.get("ExecutionRoleArn"):
            service = {"iam:PassedToService": "sagemaker.amazonaws.com"}
            yield Request("iam:PassRole", role, service)
        self.tags[arn] = tags

    def _tagged(self, action: str, arn: str, tags: dict[str, str], **context: Any) -> Request:
        named = {f"aws:RequestTag/{key}": value for key, value in tags.items()}
        named |= {"aws:TagKeys": list(tags)} if tags else {}
        matches = self.request(action, arn, **context)
        return Request(action, arn, {**matches.context, **named})


def _kind(word: str) -> str:
    """TrainingJob -> training-job."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", word).lower()


def tags_of(sent: dict) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in sent.get("Tags") or []}


def _limits(sent: dict) -> dict[str, Any]:
    """SageMaker's own condition keys of a creation."""
    config = sent.get("ResourceConfig", {})
    instances = [config, *config.get("InstanceGroups", []), sent.get("TransformResources", {})]
    instances += sent.get("ProductionVariants", [])
    matches: dict[str, Any] = {}
    if types := [row["InstanceType"] for row in instances if "InstanceType" in row]:
        matches["sagemaker__InstanceTypes"] = types
    if "StoppingCondition" in sent:
        longest = sent["StoppingCondition"].get("MaxRuntimeInSeconds", 86400)  # AWS's default
        matches["sagemaker__MaxRuntimeInSeconds"] = longest
    if "KeepAlivePeriodInSeconds" in config:
        matches["sagemaker__KeepAlivePeriod"] = config["KeepAlivePeriodInSeconds"]
    models = [
        row["ModelName"]
        for row in [sent, *sent.get("ProductionVariants", [])]
        if "ModelName" in row and "ExecutionRoleArn" not in sent
    ]
    if models:
        matches["sagemaker__ModelArn"] = f"{SAGEMAKER}:model/{models[0].lower()}"
    return matches


def _s3(call: Call) -> Iterator[Request]:
    action = f"s3:{S3_ACTIONS.get(call.operation, call.operation)}"
    bucket = call.request.get("Bucket", "")
    if not bucket:
        yield Request(action, "*")
        return
    arn = f"arn:aws:s3:::{bucket}"
    keys = [row["Key"] for row in call.request.get("Delete", {}).get("Objects", [])]
    keys += [call.request["Key"]] if "Key" in call.request else []
    yield from (Request(action, f"{arn}/{key}") for key in keys)
    if not keys:
        yield Request(action, arn)


def _logs(call: Call) -> Iterator[Request]:
    group = call.request.get("logGroupName", call.request.get("logGroupNamePrefix", ""))
    stream = call.request.get("logStreamName", "")
    yield Request(f"logs:{call.operation}", f"{LOGS}:{group}:log-stream:{stream}")


def _cloudformation(call: Call) -> Iterator[Request]:
    name = call.request.get("StackName", "*")
    name = name if name.startswith("arn:") else f"stack/{name}/0a1b"
    arn = name if name.startswith("arn:") else f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:{name}"
    yield Request(f"cloudformation:{call.operation}", arn)


def _ecr(call: Call) -> Iterator[Request]:
    name = call.request.get("repositoryName", "*")
    owner = call.request.get("registryId", ACCOUNT)
    yield Request(f"ecr:{call.operation}", f"arn:aws:ecr:{REGION}:{owner}:repository/{name}")


def requests_of_job(sent: dict) -> list[Request]:
    """What SageMaker does with a training job's role: code and data in, logs, model out.

    sent: a CreateTrainingJob request. The interfaces of a job in a VPC: `requests_in_vpc`.
    """
    name, matches = sent["TrainingJobName"], []
    code = json.loads(sent["HyperParameters"].get("sagemaker_submit_directory", '""'))
    sources = [
        row["DataSource"]["S3DataSource"]["S3Uri"] for row in sent.get("InputDataConfig", [])
    ]
    for uri in [*sources, *([code] if code else [])]:
        bucket, key = _place(uri)
        matches.append(Request("s3:ListBucket", f"arn:aws:s3:::{bucket}"))
        matches.append(Request("s3:GetObject", f"arn:aws:s3:::{bucket}/{key}"))
    outputs = [sent["OutputDataConfig"]["S3OutputPath"] + f"/{name}/output/model.tar.gz"]
    if "CheckpointConfig" in sent:
        outputs.append(sent["CheckpointConfig"]["S3Uri"] + "/checkpoint")
    for uri in outputs:
        bucket, key = _place(uri)
        matches.append(Request("s3:PutObject", f"arn:aws:s3:::{bucket}/{key}"))
    group = f"{LOGS}:/aws/sagemaker/TrainingJobs:log-stream:"
    matches += [Request("logs:CreateLogGroup", group), Request("logs:DescribeLogStreams", group)]
    stream = f"{group}{name}/algo-1-1790000000"
    matches += [Request("logs:CreateLogStream", stream), Request("logs:PutLogEvents", stream)]
    metrics = {"cloudwatch:namespace": "/aws/sagemaker/TrainingJobs"}
    return [*matches, Request("cloudwatch:PutMetricData", "*", metrics)]


def requests_in_vpc(outputs: Mapping[str, str]) -> list[Request]:
    """What SageMaker does with a role before and after a job in a VPC.

    outputs: those of the network stack.
    """
    ec2 = f"arn:aws:ec2:{REGION}:{ACCOUNT}"
    subnet, group = outputs["SubnetId"], outputs["SecurityGroupId"]
    there = {"ec2:Vpc": f"{ec2}:vpc/{outputs['VpcId']}"}
    made = f"{ec2}:network-interface/eni-1"
    matches = [Request("ec2:CreateNetworkInterface", f"{ec2}:network-interface/*")]
    for part in (f"subnet/{subnet}", f"security-group/{group}"):
        matches.append(Request("ec2:CreateNetworkInterface", f"{ec2}:{part}", there))
    placed = {**there, "ec2:Subnet": f"{ec2}:subnet/{subnet}"}
    lent = {**placed, "ec2:AuthorizedUser": "arn:aws:iam::1:root"}
    matches.append(Request("ec2:CreateNetworkInterfacePermission", made, lent))
    matches += [
        Request(f"ec2:{action}", made, placed)
        for action in ("DeleteNetworkInterface", "DeleteNetworkInterfacePermission")
    ]
    # Its request names no interface; nobody has seen here whether EC2 tells IAM of one.
    matches.append(Request("ec2:DeleteNetworkInterfacePermission", "*"))
    looks = ("NetworkInterfaces", "Vpcs", "DhcpOptions", "Subnets", "SecurityGroups")
    return matches + [Request(f"ec2:Describe{subject}", "*") for subject in looks]


def _place(uri: str) -> tuple[str, str]:
    parts = urlsplit(uri)
    return parts.netloc, parts.path.lstrip("/")
