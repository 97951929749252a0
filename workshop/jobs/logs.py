"""A training job's log: fetched from CloudWatch, with rank and host of each line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from workshop.output import event

LOG_GROUP = "/aws/sagemaker/TrainingJobs"
# Before what a rank said under mpirun the toolkit writes [1,mpirank:2,algo-2]<stdout>: and version
# 3 of the SDK [1,2]<stdout>: without the host.
RANK_TAG = re.compile(
    r"\[\d+,(?:mpirank:)?(\d+)(?:,([^\]]+))?\]<std(?:out|err)>:\s?(.*)", re.DOTALL
)


@dataclass(frozen=True)
class Line:
    """A line of a job's log.

    host: where it was said, such as "algo-2". rank: of the process under mpirun, else None.
    stream: the host whose log holds the line; under mpirun the first host's log holds all. time:
    when it reached the log, Unix seconds; None where nobody knows.
    """

    host: str
    rank: int | None
    text: str
    stream: str
    time: float | None = None

    def __str__(self) -> str:
        who = self.host if self.rank is None else f"rank {self.rank} on {self.host}"
        return f"{who}: {self.text}"

    @property
    def event(self) -> dict | None:
        """The JSON record that the script printed in this line, or None."""
        record = event(self.text)
        return record and {"host": self.host, "rank": self.rank} | record


def parse(stream: str, message: str, time: float | None = None) -> Line:
    """Split mpirun's rank tag off a log message."""
    if tag := RANK_TAG.match(message):
        return Line(tag[2] or stream, int(tag[1]), tag[3], stream, time)
    return Line(stream, None, message, stream, time)


class LogReader:
    """Reads what is new in a job's log streams. client: boto3's for CloudWatch Logs."""

    def __init__(self, client, job: str) -> None:
        self.client, self.job = client, job
        self.tokens: dict[str, str] = {}

    def new_lines(self) -> list[Line]:
        """The lines since the last call, host after host; empty if there is no log yet."""
        return [
            parse(stream.split("/")[-1].rpartition("-")[0], text, time)
            for stream in self._streams()
            for text, time in self._messages(stream)
        ]

    def _streams(self) -> list[str]:
        try:
            pages = self.client.get_paginator("describe_log_streams").paginate(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{self.job}/"
            )
            return [stream["logStreamName"] for page in pages for stream in page["logStreams"]]
        except self.client.exceptions.ResourceNotFoundException:
            return []

    def _messages(self, stream: str) -> Iterator[tuple[str, float]]:
        while True:
            after = {"nextToken": self.tokens[stream]} if stream in self.tokens else {}
            page = self.client.get_log_events(
                logGroupName=LOG_GROUP, logStreamName=stream, startFromHead=True, **after
            )
            for entry in page["events"]:
                yield entry["message"].rstrip("\n"), entry["timestamp"] / 1000
            if self.tokens.get(stream) == page["nextForwardToken"]:
                return
            self.tokens[stream] = page["nextForwardToken"]
