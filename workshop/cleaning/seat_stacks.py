"""The seat's stacks, the last one made first, with what their parts cost while they stand."""

from __future__ import annotations

from collections.abc import Iterator

from workshop.account import stacks
from workshop.account.prices import usd_per_month as month
from workshop.cleaning.things import Finding, Thing, as_dict, with_cost

NOTEBOOK = "AWS::SageMaker::NotebookInstance"
BY_TYPE = {"AWS::EC2::NatGateway": "nat-gateway", "AWS::EC2::EIP": "public-ipv4"}


class Stacks:
    """CloudFormation's stacks of the seat. `workshop.account.stacks.delete` deletes them."""

    kind = "stacks"

    def __init__(self, session) -> None:
        self.session = session

    def find(self) -> Finding:
        found = self.named()
        priced = [with_cost(one, lambda one=one: self._cost(one.name)) for one in found.ours]
        return Finding(priced, found.strangers)

    def named(self) -> Finding:
        """The same, without prices."""
        found = Finding()
        for one in sorted(live(self.session), key=self._place):
            thing = Thing(self.kind, one["StackName"])
            found.sort(self.session.seat, thing, as_dict(one.get("Tags", [])))
        return found

    def delete(self, thing: Thing) -> None:
        stacks.delete(self.session, (self._short(thing.name),), say=lambda _: None)

    def _short(self, full: str) -> str:
        return full.removeprefix(self.session.job_prefix)

    def _place(self, stack: dict) -> int:
        """Its place in the order of deletion: whoever uses another's exports goes before it."""
        order, name = stacks.ALL[::-1], self._short(stack["StackName"])
        return order.index(name) if name in order else -1

    def _cost(self, name: str) -> tuple[float | None, str]:
        parts = list(self._parts(name))
        costs = [price for _, price in parts]
        return None if None in costs else sum(costs), ", ".join(what for what, _ in parts)

    def _parts(self, name: str) -> Iterator[tuple[str, float | None]]:
        """(what, USD a month) of each part of a stack that costs while it stands."""
        endpoints = []
        for one in resources(self.session, name):
            kind, physical = one["ResourceType"], one.get("PhysicalResourceId", "")
            if kind in BY_TYPE:
                yield BY_TYPE[kind], month(BY_TYPE[kind])
            elif kind == NOTEBOOK and physical:
                yield self._notebook(physical)
            elif kind == "AWS::EC2::VPCEndpoint" and physical:
                endpoints.append(physical)
        if endpoints:
            count = self._zones(endpoints)
            yield f"{count} x interface-endpoint", month("interface-endpoint", count)

    def _notebook(self, physical: str) -> tuple[str, float | None]:
        client = self.session.client("sagemaker")
        found = client.describe_notebook_instance(NotebookInstanceName=_name(physical))
        what = f"notebook {found['InstanceType']}"
        if found["NotebookInstanceStatus"] == "Stopped":  # its volume costs, which is not priced
            return f"{what}, stopped", 0.0
        return what, month(what)

    def _zones(self, endpoints: list[str]) -> int:
        """How many times an interface endpoint is charged: once in each zone. Gateways are free."""
        found = self.session.client("ec2").describe_vpc_endpoints(VpcEndpointIds=endpoints)
        interfaces = [one for one in found["VpcEndpoints"] if one["VpcEndpointType"] == "Interface"]
        return sum(max(1, len(one.get("SubnetIds", []))) for one in interfaces)


def live(session) -> list[dict]:
    """All stacks whose names begin like the seat's, whoever made them."""
    pages = session.client("cloudformation").get_paginator("describe_stacks").paginate()
    found = [one for page in pages for one in page["Stacks"]]
    return [
        one
        for one in found
        if one["StackName"].startswith(session.job_prefix)
        and one["StackStatus"] != "DELETE_COMPLETE"
    ]


def resources(session, stack: str) -> list[dict]:
    """What is in a stack that stands. stack: its name."""
    parts = _listed(session.client("cloudformation"), stack)
    return [one for one in parts if one.get("ResourceStatus") != "DELETE_COMPLETE"]


def held_buckets(session) -> set[str]:
    """The buckets that a stack of the seat holds: they go with it."""
    own = Stacks(session).named().ours
    return {
        one["PhysicalResourceId"]
        for stack in own
        for one in resources(session, stack.name)
        if one["ResourceType"] == "AWS::S3::Bucket" and one.get("PhysicalResourceId")
    }


def notebooks(session) -> dict[str, dict[str, str]]:
    """Name -> tags of its stack, for each notebook instance that a stack has made.

    Of the stacks whose names begin like the seat's, deleted ones too: CloudFormation tells of
    those for 90 days. So a log outlives its notebook instance and still has an owner.
    """
    client, found = session.client("cloudformation"), {}
    pages = client.get_paginator("list_stacks").paginate()
    listed = [one for page in pages for one in page["StackSummaries"]]
    for one in listed:
        if not one["StackName"].startswith(session.job_prefix):
            continue
        names = _notebooks(client, one["StackId"])
        if names:
            stack = client.describe_stacks(StackName=one["StackId"])["Stacks"][0]
            found |= dict.fromkeys(names, as_dict(stack.get("Tags", [])))
    return found


def _notebooks(client, stack_id: str) -> list[str]:
    return [
        _name(one["PhysicalResourceId"])
        for one in _listed(client, stack_id)
        if one["ResourceType"] == NOTEBOOK and one.get("PhysicalResourceId")
    ]


def _listed(client, stack: str) -> list[dict]:
    """All that was ever in a stack. stack: its name, or its id where it has been deleted."""
    pages = client.get_paginator("list_stack_resources").paginate(StackName=stack)
    return [one for page in pages for one in page["StackResourceSummaries"]]


def _name(physical: str) -> str:
    """A notebook instance's name; CloudFormation has its ARN."""
    return physical.split("/")[-1]
