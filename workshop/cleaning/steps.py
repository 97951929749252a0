"""The order in which things are deleted.

What runs stops first: it costs most, and it writes. What proves who owns something goes after it:
a job's record after its log, a stack after the objects in its bucket.
"""

from __future__ import annotations

from functools import cache

from workshop.cleaning.buckets import Buckets, Objects
from workshop.cleaning.hosting import EndpointConfigs, Endpoints, Models
from workshop.cleaning.images import ImageRepositories
from workshop.cleaning.jobs import RunningJobs, WarmPools
from workshop.cleaning.logs import EndpointLogs, JobLogs, NotebookLogs
from workshop.cleaning.records import JobRecords
from workshop.cleaning.seat_stacks import Stacks
from workshop.cleaning.things import Step
from workshop.cleaning.transforms import RunningTransforms, TransformLogs

ORDER = (
    RunningJobs,
    WarmPools,
    RunningTransforms,
    Endpoints,
    EndpointConfigs,
    Models,
    ImageRepositories,
    EndpointLogs,
    JobLogs,
    TransformLogs,
    JobRecords,
    Objects,
    Stacks,
    Buckets,
    NotebookLogs,
)


class _Account:
    """A session whose clients are made once: a run asks some of them dozens of times."""

    def __init__(self, session) -> None:
        self._session = session
        self.client = cache(session.client)

    def __getattr__(self, name: str):
        return getattr(self._session, name)


def steps(session) -> list[Step]:
    """A step for each kind of things, in order."""
    account = _Account(session)
    return [each(account) for each in ORDER]
