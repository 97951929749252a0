"""What moto's CloudFormation lacks: deletion of a network, rules that lead out, conditions.

moto 5.2.5 makes VPC endpoints, gateways, routes and addresses from a template, but leaves them
behind when the stack goes, and then cannot delete the VPC. It forgets a resource that changed, if
it does not know how to change it. It looks at conditions when a stack is made, not when it is
updated. It does not tell a route table of its subnet, ignores the rules that a security group has
for what goes out, and gives a stack that a change set has made or changed no outputs. `fill` fixes
these; but a resource that CloudFormation would replace keeps its old properties, and a VPC has no
DNS attributes.

It makes a stack's resources when somebody first asks for them, also those of a deleted stack:
whoever describes one by its id, or lists its resources, brings them back to life. Here a stack
that goes keeps its outputs and the list of its resources, as AWS does for 90 days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.cloudformation import parsing
from moto.cloudformation.models import ChangeSet, Stack, cloudformation_backends
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

# model -> how its resource is deleted: takes the EC2 backend and the resource
DELETIONS: dict[type, Callable[[Any, Any], object]] = {
    ElasticAddress: lambda ec2, one: ec2.release_address(allocation_id=one.allocation_id),
    InternetGateway: lambda ec2, one: ec2.delete_internet_gateway(one.id),
    NatGateway: lambda ec2, one: ec2.delete_nat_gateway(one.id),
    Route: lambda ec2, one: one.route_table._routes.pop(one.id, None),  # its table may be gone
    RouteTable: lambda ec2, one: ec2.delete_route_table(one.id),
    SubnetRouteTableAssociation: lambda ec2, one: _separate(ec2, one),
    VPCEndPoint: lambda ec2, one: _delete_endpoint(ec2, one),
    VPCGatewayAttachment: lambda ec2, one: ec2.detach_internet_gateway(one.gateway_id, one.vpc_id),
}
NOT_CHANGED = (*DELETIONS, SecurityGroupIngress, Subnet, VPC)


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
        given = cloudformation_json["Properties"]
        backend = ec2_backends[account_id][region_name]
        rule = _outward(given, given["GroupId"])
        backend.authorize_security_group_egress(**rule)
        return cls(backend, rule)

    def delete(self, account_id: str, region_name: str) -> None:
        if self.backend.get_security_group_from_id(self.rule["group_name_or_id"]):
            self.backend.revoke_security_group_egress(**self.rule)


def _outward(given: Mapping[str, Any], group: str) -> dict[str, Any]:
    """A rule of a template as moto's calls take it. group: the id of the group that has it."""
    ranges = [{key: given[key] for key in ("CidrIp", "CidrIpv6") if key in given}]
    ranges[0] |= {"Description": given["Description"]} if "Description" in given else {}
    target, prefix = given.get("DestinationSecurityGroupId"), given.get("DestinationPrefixListId")
    return {
        "group_name_or_id": group,
        "ip_protocol": given["IpProtocol"],
        "from_port": given.get("FromPort", -1),
        "to_port": given.get("ToPort", -1),
        "ip_ranges": ranges if not (target or prefix) else [],
        "source_groups": [{"GroupId": target}] if target else [],
        "prefix_list_ids": [{"PrefixListId": prefix}] if prefix else [],
    }


def fill() -> None:
    """Teach moto what it lacks. Running it again changes nothing."""
    for model, act in DELETIONS.items():
        model.delete = _deletion(act)
    for model in NOT_CHANGED:
        model.update_from_cloudformation_json = classmethod(_unchanged)
    SubnetRouteTableAssociation.create_from_cloudformation_json = classmethod(_associate)
    SecurityGroup.create_from_cloudformation_json = classmethod(_group)
    parsing.ResourceMap.update = _update
    ChangeSet.apply = _apply
    Stack.delete = _delete_stack
    Stack.outputs = property(lambda self: _kept(self, "outputs", _moto_outputs))
    Stack.exports = property(lambda self: _kept(self, "exports", _moto_exports))
    Stack.stack_resources = property(_stack_resources)
    # moto lists its models once; a stack may have been made before this module was imported.
    for listed in (parsing.get_model_list, parsing.get_model_map, parsing.get_name_type_map):
        listed.cache_clear()


def _deletion(act: Callable[[Any, Any], object]) -> Callable[[Any, str, str], None]:
    def delete(self: Any, account_id: str, region_name: str) -> None:
        act(ec2_backends[account_id][region_name], self)

    return delete


def _associate(
    cls: type, resource_name: str, cloudformation_json: Any, account_id: str, region: str, **_: Any
) -> SubnetRouteTableAssociation:
    given = cloudformation_json["Properties"]
    table, subnet = given["RouteTableId"], given["SubnetId"]
    ec2_backends[account_id][region].associate_route_table(table, subnet_id=subnet)
    return cls(table, subnet)


_moto_group = SecurityGroup.create_from_cloudformation_json.__func__


def _group(
    cls: type, name: str, cloudformation_json: Any, account_id: str, region: str, **more: Any
) -> SecurityGroup:
    """A group with rules of its own for what goes out has not the one that allows everything."""
    made = _moto_group(cls, name, cloudformation_json, account_id, region, **more)
    if rules := cloudformation_json["Properties"].get("SecurityGroupEgress"):
        made.egress_rules.clear()
        for one in rules:
            made.ec2_backend.authorize_security_group_egress(**_outward(one, made.id))
    return made


def _separate(ec2: Any, one: SubnetRouteTableAssociation) -> None:
    """moto's association does not know its own id; the route table has the subnet under it."""
    table = ec2.route_tables.get(one.route_table_id)
    held = table._associations if table else {}
    for key in [key for key, subnet in held.items() if subnet == one.subnet_id]:
        ec2.disassociate_route_table(key)


def _delete_endpoint(ec2: Any, one: VPCEndPoint) -> None:
    """moto looks for the endpoint's route in every table that it was made with."""
    one.route_table_ids = [key for key in one.route_table_ids or [] if key in ec2.route_tables]
    ec2.delete_vpc_endpoints([one.id])


def _unchanged(cls: type, original_resource: Any, *_: Any, **__: Any) -> Any:
    return original_resource


_moto_update = parsing.ResourceMap.update


def _update(self: Any, template: dict[str, Any], parameters: Mapping | None = None) -> None:
    """moto's update; then the resources whose condition is another one now come or go."""
    _moto_update(self, template, parameters)
    off = [name for name, one in template["Resources"].items() if _is_off(self, one)]
    left = [name for name in off if self._parsed_resources.get(name) is not None]
    while left:
        failures = {name: error for name in left if (error := _delete(self, name))}
        if len(failures) == len(left):
            raise next(iter(failures.values()))
        left = list(failures)
    for name in template["Resources"]:
        if name not in off:
            self[name]  # makes it if it is not there


def _is_off(resources: Any, one: Mapping[str, Any]) -> bool:
    return "Condition" in one and not resources.lazy_condition_map[one["Condition"]]


def _delete(resources: Any, name: str) -> Exception | None:
    """Delete a resource. Returns moto's refusal, if what depends on it must go first."""
    try:
        resources._delete_resource(
            resources._parsed_resources[name], resources._resource_json_map[name]
        )
    except Exception as error:  # moto has one class for each service, and no common one
        return error
    del resources._parsed_resources[name]
    return None


_moto_apply = ChangeSet.apply


def _apply(self: Any) -> None:
    """moto's; then what the new template puts out, also to other stacks."""
    _moto_apply(self)
    stack = self.stack
    stack.template, stack.parameters = self.template, self.parameters
    stack._parse_template()
    stack.output_map = stack._create_output_map()
    backend = cloudformation_backends[stack.account_id][stack.region_name]
    backend.exports |= {one.name: one for one in stack.exports}


_moto_delete, _moto_resources = Stack.delete, Stack.stack_resources
_moto_outputs, _moto_exports = Stack.outputs, Stack.exports


def _delete_stack(self: Any) -> None:
    kept = {"outputs": self.outputs, "exports": [], "resources": self.stack_resources}
    _moto_delete(self)
    self.kept = kept


def _kept(stack: Any, name: str, ask: property) -> Any:
    kept = getattr(stack, "kept", None)
    return kept[name] if kept else ask.fget(stack)


def _stack_resources(self: Any) -> list[Any]:
    """Without what a condition leaves out."""
    return [one for one in _kept(self, "resources", _moto_resources) if one is not None]
