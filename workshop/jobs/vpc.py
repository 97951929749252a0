"""A subnet and a security group for the jobs of a seat: given, or those of its network stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workshop.account.stacks import STACKS, deploy, status

if TYPE_CHECKING:
    from workshop.jobs.session import Session


class NoNetwork(Exception):
    """There is no network for the job; the message names the remedy."""


def network(session: Session, subnets=(), security_group_ids=()) -> dict[str, list[str]]:
    """Where a job's instances are: `subnets` and `security_group_ids`, as an estimator takes them.

    Args:
        session: what workshop.session returned.
        subnets, security_group_ids: ids that exist; both or none. Without them the seat's network
            stack is taken. If it has none, one is made on the emulator. On AWS none is made.

    Raises:
        NoNetwork: the ids are needed, or one of the two lists is missing.
    """
    if bool(subnets) != bool(security_group_ids):
        raise NoNetwork("Give both, subnets and security_group_ids, or neither.")
    if subnets:
        return {"subnets": list(subnets), "security_group_ids": list(security_group_ids)}
    if session.target == "local" and network_from_stack(session) is None:
        deploy(session, (*STACKS, "network"), log=lambda _: None)
    if from_stack := network_from_stack(session):
        return from_stack
    raise NoNetwork(
        "On AWS a job in a VPC needs an existing network. Make the seat's own, which costs "
        f"nothing: workshop stacks up network --target aws --seat {session.seat}. Or set the "
        "parameters subnets and security_group_ids. The subnet needs a way to S3 (a gateway "
        "endpoint), the group must let its own members reach each other on every port, and the "
        "training role must be allowed to use that VPC, as cloudformation/network.yaml allows it "
        "for its own."
    )


def network_from_stack(session: Session, serving: bool = False) -> dict[str, list[str]] | None:
    """The subnet and the group of the seat's network stack; None if it has none.

    serving: with the subnet of a second zone, which endpoints want and jobs must not have.
    """
    (stack,) = status(session, ("network",))
    if not stack.usable:
        return None
    made = stack.outputs
    subnets = [made["SubnetId"], *([made["ServingSubnetId"]] if serving else [])]
    return {"subnets": subnets, "security_group_ids": [made["SecurityGroupId"]]}
