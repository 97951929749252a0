"""What the instances of a training job said, from the emulator's CloudWatch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
LATE = 5000  # milliseconds by which a line may reach the log after one with a later time


class JobEvents:
    """A job's log, each line once. client: boto3's for CloudWatch Logs."""

    def __init__(self, client: Any, job: str) -> None:
        self.client, self.job = client, job
        self.last, self.seen = 0, set[str]()

    def new(self) -> Iterator[tuple[str, str]]:
        """(host, line) of what came since the last call, in the order of time, over all streams."""
        pages = self.client.get_paginator("filter_log_events").paginate(
            logGroupName=LOG_GROUP,
            logStreamNamePrefix=f"{self.job}/",
            startTime=max(0, self.last - LATE),
            interleaved=True,
        )
        with contextlib.suppress(self.client.exceptions.ResourceNotFoundException):  # no job yet
            for event in (event for page in pages for event in page["events"]):
                if event["eventId"] not in self.seen:
                    self.seen.add(event["eventId"])
                    self.last = max(self.last, event["timestamp"])
                    stream = event["logStreamName"].rpartition("/")[2]  # algo-1-1764180000
                    yield stream.rpartition("-")[0], event["message"]
