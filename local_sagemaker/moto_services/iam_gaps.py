"""What moto's IAM and STS lack: AWS's own policies, and session tokens that differ.

A policy such as AmazonSageMakerFullAccess exists once it is named. moto can load all 1,400
at its start; it would then write them to disk with every change. moto's GetSessionToken gives
everybody the key of AWS's documentation.
"""

from __future__ import annotations

import functools
import json
from functools import cache

from moto.core.responses import ActionResult
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend
from moto.sts.responses import TokenResponse

SESSION_SECONDS = 12 * 3600  # GetSessionToken's default
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
    TokenResponse.get_session_token = _session_token
    for name in NAMING:
        method = getattr(IAMBackend, name)
        if not hasattr(method, "__wrapped__"):
            setattr(IAMBackend, name, _loading_first(method))


def _session_token(self: TokenResponse) -> ActionResult:
    """A key of its own: kept as that of a role which nobody defined, in the account's name."""
    found = self.backend.assume_role(
        region_name=self.region,
        role_session_name="session-token",
        role_arn=f"arn:aws:iam::{self.current_account}:role/session-token",
        policy="",
        duration=self._get_int_param("DurationSeconds", SESSION_SECONDS),
        external_id="",
    )
    told = {
        "AccessKeyId": found.access_key_id,
        "SecretAccessKey": found.secret_access_key,
        "SessionToken": found.session_token,
        "Expiration": found.expiration,
    }
    return ActionResult({"Credentials": told})


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
