"""What moto's CloudFormation lacks: deletion of a network, rules that lead out, conditions.

moto makes a stack's resources when a client first asks for them, also those of a deleted stack:
describing one by its id, or listing its resources, brings them back to life. Here a deleted stack
keeps its outputs and the list of its resources, as AWS does for 90 days.

Templates are data: their YAML is read without making Python objects. moto reads them with
yaml.Loader, which calls whatever function a tag such as !!python/object/apply:os.system names
(https://github.com/getmoto/moto/issues/9941). Here its CloudFormation gets a loader that knows
YAML's own types and CloudFormation's short tags (!Ref, !Sub, !GetAtt, ...) and nothing else.

What stays: a resource that CloudFormation would replace keeps its old properties, and a VPC has no
DNS attributes.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import yaml
from moto.cloudformation import models, parsing, responses
from moto.cloudformation.models import ChangeSet, Stack, cloudformation_backends
from moto.cloudformation.utils import yaml_tag_constructor
from moto.core.common_models import CloudFormationModel
from moto.ec2.models import ec2_backends
from moto.ec2.models.elastic_ip_addresses import ElasticAddress
from moto.ec2.models.internet_gateways import InternetGateway
from moto.ec2.models.nat_gateways import NatGateway
from moto.ec2.models.route_tables import Route, RouteTable
from moto.ec2.models.security_groups import SecurityGroup, SecurityGroupIngress
from moto.ec2.models.subnets import Subnet, SubnetRouteTableAssociation
from moto.ec2.models.vpcs import VPC, VPCEndPoint
from moto.ec2.models.vpn_gateway import VPCGatewayAttachment
from yaml.constructor import ConstructorError

from local_sagemaker.moto_backend.patch import patch
from local_sagemaker.protocol.errors import AwsError

# moto makes these from a template, but leaves them behind when the stack is deleted, and then
# cannot delete the VPC. It does not know how to change them either, and forgets one that changed:
# https://github.com/getmoto/moto/pull/4538
LEFT_BEHIND: tuple[Any, ...] = (
    *(ElasticAddress, InternetGateway, NatGateway, Route, RouteTable),
    *(SubnetRouteTableAssociation, VPCEndPoint, VPCGatewayAttachment),
)
UNCHANGEABLE: tuple[Any, ...] = (*LEFT_BEHIND, SecurityGroupIngress, Subnet, VPC)


class SecurityGroupEgress(CloudFormationModel):
    """AWS::EC2::SecurityGroupEgress: a rule of a group that lets traffic out to a group."""

    def __init__(self, backend: Any, rule: dict[str, Any]) -> None:
        self.backend, self.rule = backend, rule

    @property
    def physical_resource_id(self) -> str:
        return f"{self.rule['group_name_or_id']}-out"

    @staticmethod
    def cloudformation_name_type() -> str:
        return ""

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::EC2::SecurityGroupEgress"

    @classmethod
    def create_from_cloudformation_json(
        cls,
        resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
        **_: Any,
    ) -> SecurityGroupEgress:
        properties = cloudformation_json["Properties"]
        backend = ec2_backends[account_id][region_name]
        rule = _egress_rule(properties, properties["GroupId"])
        backend.authorize_security_group_egress(**rule)
        return cls(backend, rule)

    def delete(self, account_id: str, region_name: str) -> None:
        if self.backend.get_security_group_from_id(self.rule["group_name_or_id"]):
            self.backend.revoke_security_group_egress(**self.rule)


def _egress_rule(rule: Mapping[str, Any], group: str) -> dict[str, Any]:
    """A rule of a template as moto's calls take it. group: the id of the group that has it."""
    ranges = [{key: rule[key] for key in ("CidrIp", "CidrIpv6") if key in rule}]
    ranges[0] |= {"Description": rule["Description"]} if "Description" in rule else {}
    target, prefix = rule.get("DestinationSecurityGroupId"), rule.get("DestinationPrefixListId")
    return {
        "group_name_or_id": group,
        "ip_protocol": rule["IpProtocol"],
        "from_port": rule.get("FromPort", -1),
        "to_port": rule.get("ToPort", -1),
        "ip_ranges": ranges if not (target or prefix) else [],
        "source_groups": [{"GroupId": target}] if target else [],
        "prefix_list_ids": [{"PrefixListId": prefix}] if prefix else [],
    }


def _delete_resource(resource: Any, account_id: str, region_name: str) -> None:
    """Delete what a stack of LEFT_BEHIND has made."""
    ec2 = ec2_backends[account_id][region_name]
    match resource:
        case ElasticAddress():
            ec2.release_address(allocation_id=resource.allocation_id)
        case InternetGateway():
            ec2.delete_internet_gateway(resource.id)
        case NatGateway():
            ec2.delete_nat_gateway(resource.id)
        case Route():
            resource.route_table._routes.pop(resource.id, None)  # its table may be gone
        case RouteTable():
            ec2.delete_route_table(resource.id)
        case SubnetRouteTableAssociation():
            # moto's association does not know its own id; the route table has the subnet under it.
            table = ec2.route_tables.get(resource.route_table_id)
            for key, subnet in list(table._associations.items()) if table else ():
                if subnet == resource.subnet_id:
                    ec2.disassociate_route_table(key)
        case VPCEndPoint():
            # moto looks for the VPC endpoint's route in every table that it was made with.
            tables = resource.route_table_ids or []
            resource.route_table_ids = [key for key in tables if key in ec2.route_tables]
            ec2.delete_vpc_endpoints([resource.id])
        case VPCGatewayAttachment():
            ec2.detach_internet_gateway(str(resource.gateway_id), resource.vpc_id)


for _model in LEFT_BEHIND:
    _model.delete = _delete_resource
for _model in UNCHANGEABLE:
    _model.update_from_cloudformation_json = classmethod(
        lambda _, original_resource, **__: original_resource
    )


@patch(SubnetRouteTableAssociation, "create_from_cloudformation_json")
def _associate(
    _moto_create: Callable,
    cls: type,
    resource_name: str,
    cloudformation_json: Any,
    account_id: str,
    region_name: str,
    **_: Any,
) -> SubnetRouteTableAssociation:
    """moto's does not tell the route table."""
    properties = cloudformation_json["Properties"]
    table, subnet = properties["RouteTableId"], properties["SubnetId"]
    ec2_backends[account_id][region_name].associate_route_table(table, subnet_id=subnet)
    return cls(table, subnet)


@patch(SecurityGroup, "create_from_cloudformation_json")
def _create_group(
    moto_create: Callable,
    cls: type,
    resource_name: str,
    cloudformation_json: Any,
    *args: Any,
    **kwargs: Any,
) -> SecurityGroup:
    """A group with egress rules of its own has not the one that allows everything."""
    group = moto_create(cls, resource_name, cloudformation_json, *args, **kwargs)
    if rules := cloudformation_json["Properties"].get("SecurityGroupEgress"):
        group.egress_rules.clear()
        for rule in rules:
            group.ec2_backend.authorize_security_group_egress(**_egress_rule(rule, group.id))
    return group


@patch(parsing.ResourceMap, "update")
def _update(
    moto_update: Callable,
    self: parsing.ResourceMap,
    template: dict[str, Any],
    parameters: dict[str, Any] | None = None,
) -> None:
    """moto's looks at conditions when a stack is made, and not when it is updated."""
    moto_update(self, template, parameters)
    excluded = [name for name, resource in template["Resources"].items() if _is_off(self, resource)]
    left = [name for name in excluded if self._parsed_resources.get(name) is not None]
    while left:
        failures = {name: error for name in left if (error := _delete(self, name))}
        if len(failures) == len(left):
            raise next(iter(failures.values()))
        left = list(failures)
    for name in template["Resources"]:
        if name not in excluded:
            self[name]  # makes it if it is not there


def _is_off(resources: parsing.ResourceMap, resource: Mapping[str, Any]) -> bool:
    return "Condition" in resource and not resources.lazy_condition_map[resource["Condition"]]


def _delete(resources: parsing.ResourceMap, name: str) -> Exception | None:
    """Delete a resource. Returns moto's refusal, if what depends on it must go first."""
    try:
        resources._delete_resource(
            resources._parsed_resources[name], resources._resource_json_map[name]
        )
    except Exception as error:  # moto has one class for each service, and no common one
        return error
    del resources._parsed_resources[name]
    return None


@patch(ChangeSet, "apply")
def _apply_change_set(moto_apply: Callable, self: ChangeSet) -> None:
    """moto's gives the stack no outputs, and other stacks no exports."""
    moto_apply(self)
    stack = self.stack
    stack.template, stack.parameters = self.template, self.parameters
    stack._parse_template()
    stack.output_map = stack._create_output_map()
    backend = cloudformation_backends[stack.account_id][stack.region_name]
    backend.exports |= {export.name: export for export in stack.exports}


@patch(Stack, "delete")
def _delete_stack(moto_delete: Callable, self: Any) -> None:
    resources = self.resource_map._parsed_resources
    made = dict(resources)
    moto_delete(self)
    resources.update(made)  # what moto does not find there, it would make again


@patch(Stack, "stack_resources")
def _stack_resources(moto_resources: Callable, self: Any) -> list[Any]:
    """Without what a condition excludes."""
    return [resource for resource in moto_resources(self) if resource is not None]


# moto lists its models once; a stack may have been made before this module was imported.
for _list in (parsing.get_model_list, parsing.get_model_map, parsing.get_name_type_map):
    _list.cache_clear()

HOSTING = "AWS::SageMaker::Endpoint"  # moto would make one that answers nothing


class TemplateLoader(yaml.SafeLoader):
    """YAML's own types, and tags that begin with one exclamation mark."""


TemplateLoader.add_multi_constructor(
    "!", lambda loader, name, node: yaml_tag_constructor(loader, f"!{name}", node)
)


def _load(text: Any, Loader: type) -> Any:
    try:
        template = yaml.load(text, Loader)  # a SafeLoader
    except ConstructorError as error:
        raise AwsError(
            "ValidationError", f"Template format error: YAML not well-formed. {error.problem}"
        ) from error
    resources = template.get("Resources") if isinstance(template, dict) else None
    for name, resource in resources.items() if isinstance(resources, dict) else ():
        if isinstance(resource, dict) and resource.get("Type") == HOSTING:
            raise AwsError(
                "ValidationError",
                f"{name}: the emulator makes no {HOSTING} of a template. Leave it out, and "
                "call create_endpoint with the stack's EndpointConfig.",
            )
    return template


SAFE_YAML = types.SimpleNamespace(
    Loader=TemplateLoader, load=_load, add_multi_constructor=lambda *_: None
)
for _module in (models, responses):
    _module.yaml = SAFE_YAML  # type: ignore[attr-defined]
