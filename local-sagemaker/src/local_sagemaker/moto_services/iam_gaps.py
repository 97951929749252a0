"""What moto's IAM lacks: AWS's own policies, and a role behind the emulator's key.

A policy such as AmazonSageMakerFullAccess exists once it is named. moto can load all 1,400
at its start; it would then write them to disk with every change.

Who asks with the emulator's key is a session of ROLE, as in a notebook on AWS. The sagemaker SDK 3
takes the caller's role for a job or a model that names none.
"""

from __future__ import annotations

import functools
import json
from functools import cache

from moto.core import DEFAULT_ACCOUNT_ID
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend, iam_backends
from moto.sts.models import STSBackend
from moto.utilities.utils import get_partition

PREFIX = "arn:aws:iam::aws:policy/"
NAMING = (
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


@cache
def _all() -> dict[str, dict]:
    """name -> what moto's copy of AWS's list says."""
    return json.loads(aws_managed_policies_data)


def fill(own_key: str) -> None:
    """Teach moto what it lacks, and make ROLE if it is missing. own_key: the emulator's key id."""
    iam = iam_backends[DEFAULT_ACCOUNT_ID]["aws"]
    if not any(one.name == ROLE for one in iam.get_roles()):
        what = "The emulator's own key is a session of this role."
        iam.create_role(ROLE, json.dumps(TRUST), "/", None, what, [], "3600")
    STSBackend.get_caller_identity = _or_role(own_key)
    for name in NAMING:
        method = getattr(IAMBackend, name)
        if not hasattr(method, "__wrapped__"):
            setattr(IAMBackend, name, _loading_first(method))


def _loading_first(method):
    @functools.wraps(method)
    def wrapped(self: IAMBackend, policy_arn: str, *arguments, **named):
        name = policy_arn.rpartition("/")[2]
        known = policy_arn in self.managed_policies
        if not known and policy_arn.startswith(PREFIX) and name in _all():
            found = AWSManagedPolicy.from_data(
                name, self.account_id, self.region_name, _all()[name]
            )
            if found.arn == policy_arn:
                self.managed_policies[policy_arn] = found
        return method(self, policy_arn, *arguments, **named)

    return wrapped


_moto_identity = STSBackend.get_caller_identity


def _or_role(own_key: str):
    def identity(self: STSBackend, access_key_id: str, region: str) -> tuple[str, str, str]:
        if access_key_id != own_key:
            return _moto_identity(self, access_key_id, region)
        arn = f"arn:{get_partition(region)}:sts::{DEFAULT_ACCOUNT_ID}:assumed-role/{ROLE}/local"
        return f"{own_key}:local", arn, DEFAULT_ACCOUNT_ID

    return identity
