"""Transform jobs: those that run are stopped, their logs go.

SageMaker has no call that deletes a transform job. Its record stays, and costs nothing.
"""

from __future__ import annotations

import time
from functools import cached_property

from workshop.cleaning.logs import SharedStreams
from workshop.cleaning.things import (
    WAIT_SECONDS,
    Finding,
    NotDeleted,
    Stranger,
    Thing,
    as_dict,
    poll_seconds,
)

RUNNING = ("InProgress", "Stopping")
# https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
TRANSFORM_LOGS = "/aws/sagemaker/TransformJobs"


class _Transforms:
    """The transform jobs whose names begin like the seat's."""

    def __init__(self, session) -> None:
        self.session, self.client = session, session.client("sagemaker")

    @cached_property
    def summaries(self) -> dict[str, dict]:
        """Name -> what ListTransformJobs tells of it."""
        prefix = self.session.job_prefix
        pages = self.client.get_paginator("list_transform_jobs").paginate(NameContains=prefix)
        found = [one for page in pages for one in page["TransformJobSummaries"]]
        named = {one["TransformJobName"]: one for one in found}
        return {name: one for name, one in named.items() if name.startswith(prefix)}

    def tags(self, name: str) -> dict[str, str]:
        arn = self.summaries[name]["TransformJobArn"]
        return as_dict(self.client.list_tags(ResourceArn=arn)["Tags"])


class RunningTransforms:
    """Transform jobs that have not ended. To delete one is to stop it."""

    kind = "running transform jobs"

    def __init__(self, session) -> None:
        self.session = session

    def find(self) -> Finding:
        found, jobs = Finding(), _Transforms(self.session)
        for name, one in jobs.summaries.items():
            if one["TransformJobStatus"] in RUNNING:
                # A transform job has no limit of its own: nobody knows what it will cost.
                thing = Thing(self.kind, name, usd_per_month=None, note="costs until it ends")
                found.sort(self.session.seat, thing, jobs.tags(name))
        return found

    def delete(self, thing: Thing) -> None:
        client, name = self.session.client("sagemaker"), {"TransformJobName": thing.name}
        if client.describe_transform_job(**name)["TransformJobStatus"] == "InProgress":
            client.stop_transform_job(**name)
        deadline = time.monotonic() + WAIT_SECONDS
        while (status := client.describe_transform_job(**name)["TransformJobStatus"]) in RUNNING:
            if time.monotonic() > deadline:
                raise NotDeleted(f"the job is still {status} after {WAIT_SECONDS} s")
            time.sleep(poll_seconds(self.session))


class TransformLogs(SharedStreams):
    """The log streams of the seat's transform jobs."""

    kind, group = "log streams of transform jobs", TRANSFORM_LOGS

    def find(self) -> Finding:
        found, counted = Finding(), self.counted(self.session.job_prefix)
        jobs = _Transforms(self.session)
        for job, count in counted.items():
            if job in jobs.summaries:
                found.sort(self.session.seat, self.thing(job, count), jobs.tags(job))
            else:
                reason = "there is no transform job of this name whose tags could tell"
                found.strangers.append(Stranger(self.kind, job, reason))
        return found
