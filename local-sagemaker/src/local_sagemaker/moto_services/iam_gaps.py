"""What moto's IAM lacks: AWS's own policies.

A policy such as AmazonSageMakerFullAccess exists once it is named. moto can load all 1,400
at its start; it would then write them to disk with every change.
"""

from __future__ import annotations

import functools
import json
from functools import cache

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend

PREFIX = "arn:aws:iam::aws:policy/"
NAMING = (
    *("attach_role_policy", "attach_user_policy", "attach_group_policy"),
    *("get_policy", "get_policy_version"),
)


@cache
def _all() -> dict[str, dict]:
    """name -> what moto's copy of AWS's list says."""
    return json.loads(aws_managed_policies_data)


def fill() -> None:
    """Teach moto what it lacks. Running it again changes nothing."""
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
