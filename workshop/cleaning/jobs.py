"""Training jobs: those that run are stopped, warm pools are ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from workshop.account.prices import PriceNotKnown, cost
from workshop.cleaning.things import (
    WAIT_SECONDS,
    Finding,
    NotDeleted,
    Thing,
    as_dict,
    poll_seconds,
    with_cost,
)

RUNNING = ("InProgress", "Stopping")


class Jobs:
    """The jobs whose names begin like the seat's. One look: what it has asked it remembers."""

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("sagemaker")

    @cached_property
    def summaries(self) -> dict[str, dict]:
        """Name -> what ListTrainingJobs tells of it."""
        prefix = self.session.job_prefix
        pages = self.client.get_paginator("list_training_jobs").paginate(NameContains=prefix)
        found = [one for page in pages for one in page["TrainingJobSummaries"]]
        return {
            one["TrainingJobName"]: one
            for one in found
            if one["TrainingJobName"].startswith(prefix)
        }

    def tags(self, name: str) -> dict[str, str]:
        """The tags of a job. A call of its own: AWS allows few a second."""
        arn = self.summaries[name]["TrainingJobArn"]
        pages = self.client.get_paginator("list_tags").paginate(ResourceArn=arn)
        return as_dict([one for page in pages for one in page["Tags"]])

    def sorted(self, kind: str, wanted: Callable[[dict], bool]) -> Finding:
        """The jobs for which `wanted` of their summary holds, as a Finding."""
        found = Finding()
        for name, one in self.summaries.items():
            if wanted(one):
                found.sort(self.session.seat, Thing(kind, name), self.tags(name))
        return found

    def until(self, name: str, done: Callable[[dict], bool], what: str) -> None:
        """Wait until `done` of the job's description holds. Raises NotDeleted after a while."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not done(found := self.client.describe_training_job(TrainingJobName=name)):
            if time.monotonic() > deadline:
                raise NotDeleted(f"{what} after {WAIT_SECONDS} s: {found['TrainingJobStatus']}")
            time.sleep(poll_seconds(self.session))


class RunningJobs:
    """Jobs that have not ended. To delete one is to stop it."""

    kind = "running training jobs"

    def __init__(self, session) -> None:
        self.session = session

    def find(self) -> Finding:
        found = Jobs(self.session).sorted(self.kind, lambda one: not has_ended(one))
        bounded = [with_cost(one, lambda one=one: self._bound(one.name)) for one in found.ours]
        return Finding(bounded, found.strangers)

    def delete(self, thing: Thing) -> None:
        jobs, name = Jobs(self.session), {"TrainingJobName": thing.name}
        status = jobs.client.describe_training_job(**name)["TrainingJobStatus"]
        if status == "InProgress":
            jobs.client.stop_training_job(**name)
        jobs.until(thing.name, has_ended, "the job has not stopped")

    def _bound(self, name: str) -> tuple[None, str]:
        """What it can cost at most, if nobody stops it."""
        client = self.session.client("sagemaker")
        found = client.describe_training_job(TrainingJobName=name)
        resources, limit = found["ResourceConfig"], found["StoppingCondition"]
        try:
            each = cost(
                resources["InstanceType"],
                resources["InstanceCount"],
                seconds=0,
                max_run=limit["MaxRuntimeInSeconds"],
            )
        except (PriceNotKnown, KeyError):
            return None, "costs until it ends; no price is known here"
        return None, f"at most {each.most_usd:.2f} USD until max_run ends it"


class WarmPools:
    """Instances that SageMaker keeps for a next job, and bills meanwhile."""

    kind = "warm pools"

    def __init__(self, session) -> None:
        self.session = session

    def find(self) -> Finding:
        found = Jobs(self.session).sorted(self.kind, is_warm)
        note = "billed like a running job until its time is over"
        ours = [replace(one, usd_per_month=None, note=note) for one in found.ours]
        return Finding(ours, found.strangers)

    def delete(self, thing: Thing) -> None:
        jobs = Jobs(self.session)
        # There is no call that deletes a pool: it ends when it is to be kept for 0 seconds.
        jobs.client.update_training_job(
            TrainingJobName=thing.name, ResourceConfig={"KeepAlivePeriodInSeconds": 0}
        )
        jobs.until(thing.name, lambda found: not is_warm(found), "the warm pool has not ended")


def is_warm(job: dict) -> bool:
    """Whether a job's summary or description has instances that wait."""
    return job.get("WarmPoolStatus", {}).get("Status") == "Available"


def has_ended(job: dict) -> bool:
    """Whether a job's summary or description says that it is over, or on its way out."""
    return job["TrainingJobStatus"] not in RUNNING
