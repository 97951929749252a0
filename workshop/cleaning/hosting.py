"""Endpoints, their configurations, and models."""

from __future__ import annotations

from botocore.exceptions import ClientError

from workshop.account import stacks
from workshop.account.prices import usd_per_month as month
from workshop.cleaning.things import Finding, Thing, as_dict, wait_until_gone, with_cost

ENDPOINT_LOGS = "/aws/sagemaker/Endpoints/"
REFUSED = ("AccessDeniedException", "AccessDenied")


class _Hosted:
    """What SageMaker lists by name, with an ARN and tags. word: as its API spells it."""

    kind: str
    word: str
    list_call: str

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("sagemaker")

    def find(self) -> Finding:
        found = Finding()
        for name, tags in self.tags().items():
            found.sort(self.session.seat, Thing(self.kind, name), tags)
        priced = [with_cost(one, lambda one=one: self._cost(one.name)) for one in found.ours]
        return Finding(priced, found.strangers)

    def tags(self) -> dict[str, dict[str, str]]:
        """Name -> tags of each whose name begins like the seat's."""
        prefix = self.session.job_prefix
        pages = self.client.get_paginator(self.list_call).paginate(NameContains=prefix)
        listed = [one for page in pages for one in page[f"{self.word}s"]]
        arns = {one[f"{self.word}Name"]: one[f"{self.word}Arn"] for one in listed}
        return {
            name: as_dict(self.client.list_tags(ResourceArn=arn)["Tags"])
            for name, arn in arns.items()
            if name.startswith(prefix)
        }

    def delete(self, thing: Thing) -> None:
        call = getattr(self.client, self.list_call.replace("list", "delete").removesuffix("s"))
        try:
            call(**{f"{self.word}Name": thing.name})
        except ClientError as error:
            if not _is_gone(error):
                raise

    def _cost(self, name: str) -> tuple[float | None, str]:
        """USD a month, and a note. What is only written down costs nothing."""
        return 0.0, ""


class EndpointConfigs(_Hosted):
    """What an endpoint is made of: instance type and model."""

    kind, word, list_call = "endpoint configurations", "EndpointConfig", "list_endpoint_configs"


class Models(_Hosted):
    """A model as SageMaker knows it. Its files are objects in the bucket."""

    kind, word, list_call = "models", "Model", "list_models"


class Endpoints(_Hosted):
    """Instances that wait for requests, day and night."""

    kind, word, list_call = "endpoints", "Endpoint", "list_endpoints"

    def delete(self, thing: Thing) -> None:
        self._claim_log(thing.name)
        super().delete(thing)
        wait_until_gone(self.session, lambda: self._status(thing.name))

    def _claim_log(self, name: str) -> None:
        """Tag the endpoint's log group as ours, while the endpoint's own tags can prove it."""
        logs = self.session.client("logs")
        groups = logs.describe_log_groups(logGroupNamePrefix=ENDPOINT_LOGS + name)["logGroups"]
        for one in groups:
            if one["logGroupName"] == ENDPOINT_LOGS + name:
                try:
                    logs.tag_resource(resourceArn=group_arn(one), tags=own_tags(self.session.seat))
                except ClientError as error:
                    # An endpoint that goes on costs more than a log that stays.
                    if error.response["Error"]["Code"] not in REFUSED:
                        raise

    def _status(self, name: str) -> str | None:
        try:
            return self.client.describe_endpoint(EndpointName=name)["EndpointStatus"]
        except ClientError as error:
            if _is_gone(error):
                return None
            raise

    def _cost(self, name: str) -> tuple[float | None, str]:
        made_of = self.client.describe_endpoint(EndpointName=name)["EndpointConfigName"]
        found = self.client.describe_endpoint_config(EndpointConfigName=made_of)
        instances = [
            (one["InstanceType"], one.get("InitialInstanceCount", 1))
            for one in found["ProductionVariants"]
            if "InstanceType" in one  # a serverless one costs by the request
        ]
        costs = [month(f"endpoint {kind}", count) for kind, count in instances]
        note = ", ".join(f"{count} x {kind}" for kind, count in instances) or "serverless"
        return None if None in costs else sum(costs), note


def own_tags(seat: str) -> dict[str, str]:
    """The kit's tags, in the form that CloudWatch Logs takes."""
    return as_dict(stacks.tags(seat))


def group_arn(group: dict) -> str:
    """A log group's ARN as the calls about tags want it: without the ":*" at its end."""
    return group.get("logGroupArn") or group["arn"].removesuffix(":*")


def _is_gone(error: ClientError) -> bool:
    """Whether SageMaker says that there is no such thing: a validation error with these words."""
    return "Could not find" in error.response["Error"].get("Message", "")
