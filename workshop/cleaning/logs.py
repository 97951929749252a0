"""Logs in CloudWatch. Streams carry no tags: they are the seat's when their job or notebook is.

Names of groups and streams: https://docs.aws.amazon.com/sagemaker/latest/dg/logging-cloudwatch.html
"""

from __future__ import annotations

from collections import Counter

from workshop.account.prices import usd_per_month as month
from workshop.cleaning.hosting import ENDPOINT_LOGS, Endpoints, group_arn
from workshop.cleaning.jobs import Jobs
from workshop.cleaning.seat_stacks import notebooks
from workshop.cleaning.things import Finding, Stranger, Thing
from workshop.jobs.logs import LOG_GROUP

NOTEBOOK_LOGS = "/aws/sagemaker/NotebookInstances"


class SharedStreams:
    """The streams of a group that many share, by what stands before their first "/"."""

    kind: str
    group: str

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("logs")

    def streams(self, prefix: str) -> list[str]:
        """Names of the streams that begin so; none where there is no group."""
        try:
            pages = self.client.get_paginator("describe_log_streams").paginate(
                logGroupName=self.group, logStreamNamePrefix=prefix
            )
            return [one["logStreamName"] for page in pages for one in page["logStreams"]]
        except self.client.exceptions.ResourceNotFoundException:
            return []

    def counted(self, prefix: str) -> Counter:
        """Writer -> its number of streams, of those that begin so."""
        return Counter(name.split("/")[0] for name in self.streams(prefix))

    def thing(self, writer: str, count: int) -> Thing:
        # botocore's model of DescribeLogStreams: storedBytes is reported as zero since 2019.
        return Thing(self.kind, writer, count, size=None, usd_per_month=None)

    def delete(self, thing: Thing) -> None:
        for name in self.streams(f"{thing.name}/"):
            try:
                self.client.delete_log_stream(logGroupName=self.group, logStreamName=name)
            except self.client.exceptions.ResourceNotFoundException:
                continue


class JobLogs(SharedStreams):
    """The log streams of the seat's training jobs."""

    kind, group = "log streams of training jobs", LOG_GROUP

    def find(self) -> Finding:
        found, counted = Finding(), self.counted(self.session.job_prefix)
        jobs = Jobs(self.session)
        for job, count in counted.items():
            if job in jobs.summaries:
                found.sort(self.session.seat, self.thing(job, count), jobs.tags(job))
            else:
                reason = "there is no training job of this name whose tags could tell"
                found.strangers.append(Stranger(self.kind, job, reason))
        return found


class NotebookLogs(SharedStreams):
    """The log streams of the seat's notebook instance. The stack that made it proves it."""

    kind, group = "log streams of the notebook instance", NOTEBOOK_LOGS

    def find(self) -> Finding:
        found, counted = Finding(), self.counted(self.session.job_prefix)
        made = notebooks(self.session)
        for name in made:  # it may be the seat's name alone, without what follows in others
            counted |= self.counted(f"{name}/")
        for name, count in counted.items():
            if name in made:
                found.sort(self.session.seat, self.thing(name, count), made[name])
            else:
                reason = "no stack is known to have made a notebook instance of this name"
                found.strangers.append(Stranger(self.kind, name, reason))
        return found


class EndpointLogs:
    """The log groups of endpoints: the seat's by their own tags, or by those of their endpoint."""

    kind = "log groups of endpoints"

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("logs")

    def find(self) -> Finding:
        found = Finding()
        prefix = ENDPOINT_LOGS + self.session.job_prefix
        pages = self.client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
        groups = [one for page in pages for one in page["logGroups"]]
        endpoints = Endpoints(self.session).tags() if groups else {}
        for one in groups:
            name, size = one["logGroupName"], one.get("storedBytes", 0)
            thing = Thing(self.kind, name, size=size, usd_per_month=month("logs", size))
            tags = endpoints.get(name.removeprefix(ENDPOINT_LOGS))
            if tags is None:  # the endpoint is gone: `Endpoints` has tagged its log
                tags = self.client.list_tags_for_resource(resourceArn=group_arn(one))["tags"]
            found.sort(self.session.seat, thing, tags)
        return found

    def delete(self, thing: Thing) -> None:
        try:
            self.client.delete_log_group(logGroupName=thing.name)
        except self.client.exceptions.ResourceNotFoundException:
            return
