"""What moto's IAM lacks: AWS's own policies, and a role behind the emulator's key.

A client with the emulator's key is a session of ROLE, as in a notebook on AWS. The sagemaker SDK 3
takes the caller's role for a job or a model that names none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend, iam_backends
from moto.sts.models import STSBackend
from moto.utilities.utils import get_partition

from local_sagemaker.moto_backend.patch import patch

PREFIX = "arn:aws:iam::aws:policy/"
TAKE_AN_ARN = (
    *("attach_role_policy", "attach_user_policy", "attach_group_policy"),
    *("get_policy", "get_policy_version"),
)
ROLE = "local-sagemaker-training-role"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "sagemaker.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}
_owner_key = ""


def make_owner_role(owner_key: str) -> None:
    """Make ROLE if it is missing. owner_key: id of the key whose owner is a session of it."""
    global _owner_key
    _owner_key = owner_key
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    if not any(role.name == ROLE for role in iam.get_roles()):
        description = "The emulator's own key is a session of this role."
        iam.create_role(ROLE, json.dumps(TRUST), "/", None, description, [], "3600")


@patch(STSBackend, "get_caller_identity")
def _identity(
    moto_identity: Callable, self: STSBackend, access_key_id: str, region: str
) -> tuple[str, str, str]:
    if not _owner_key or access_key_id != _owner_key:
        return moto_identity(self, access_key_id, region)
    arn = f"arn:{get_partition(region)}:sts::{DEFAULT_ACCOUNT_ID}:assumed-role/{ROLE}/local"
    return f"{_owner_key}:local", arn, DEFAULT_ACCOUNT_ID


@cache
def _managed_policies() -> dict[str, dict]:
    """name -> what moto's copy of AWS's list says."""
    return json.loads(aws_managed_policies_data)


def _load_policy(
    moto_method: Callable, self: IAMBackend, policy_arn: str, *args: Any, **kwargs: Any
) -> Any:
    """moto's; a policy of AWS's exists once it is named.

    moto can load all 1,400 at its start (https://github.com/getmoto/moto/pull/7219); they would
    then be written to disk with every change.
    """
    name = policy_arn.rpartition("/")[2]
    unknown = policy_arn not in self.managed_policies
    if unknown and policy_arn.startswith(PREFIX) and name in _managed_policies():
        policy = AWSManagedPolicy.from_data(
            name, self.account_id, self.region_name, _managed_policies()[name]
        )
        if policy.arn == policy_arn:
            self.managed_policies[policy_arn] = policy
    return moto_method(self, policy_arn, *args, **kwargs)


for _name in TAKE_AN_ARN:
    patch(IAMBackend, _name)(_load_policy)
