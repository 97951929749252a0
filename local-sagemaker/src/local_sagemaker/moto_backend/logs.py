"""What grows with every job, log lines and metric values, in SQLite instead of moto's memory.

moto keeps both in lists, and its state is written whole at each change. Here a line costs the
same whether it is the first or the millionth, in time and in memory, and is on disk at once.
"""

from __future__ import annotations

import json
import logging
import pickle
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import moto.logs.models as moto_logs
from moto.cloudwatch.models import CloudWatchBackend, cloudwatch_backends
from moto.core import DEFAULT_ACCOUNT_ID
from moto.logs.exceptions import InvalidParameterException
from moto.logs.responses import LogsResponse
from moto.logs.utils import EventMessageFilter

from local_sagemaker.moto_backend.patch import patch
from local_sagemaker.storage.files import full_disk_as_os_error

LOG = logging.getLogger(__name__)
STREAM_LIMIT = 64 * 1024 * 1024  # characters of one log stream
FULL = f"[local] This stream is full ({STREAM_LIMIT // 1024**2} MB). What follows is left out."
PAGE = 10_000  # events of one GetLogEvents, at most
SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    stream TEXT, time INTEGER, number INTEGER, ingested INTEGER, message TEXT,
    PRIMARY KEY (stream, time, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS metrics (owner TEXT, datum BLOB);
"""
_MotoLogStream = moto_logs.LogStream


class Journal:
    """The database. The process uses one, from `open_journal` on."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        self.database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        # A killed process loses no line; a machine that stops may lose the last ones.
        self.database.execute("PRAGMA synchronous=NORMAL")
        self.database.executescript(SCHEMA)
        ((self.number,),) = self.database.execute("SELECT coalesce(max(number), 0) FROM events")
        self.metrics: dict[str, StoredMetrics] = {}

    def add(self, stream: str, events: list[dict]) -> None:
        """Append events: {"timestamp": Unix milliseconds, "message": text}."""
        ingested = int(time.time() * 1000)
        with self.lock:
            rows = []
            for event in events:
                self.number += 1
                rows.append((stream, event["timestamp"], self.number, ingested, event["message"]))
            with full_disk_as_os_error(), self.database:
                self.database.execute("BEGIN")
                self.database.executemany("INSERT INTO events VALUES (?,?,?,?,?)", rows)

    def select(
        self, columns: str, stream: str, start: int | None, end: int | None, rest: str = ""
    ) -> list[tuple]:
        """Rows of a stream's events from `start` to `end`, both included, by time."""
        sql = f"SELECT {columns} FROM events WHERE stream=? AND time>=? AND time<=? {rest}"
        with self.lock:
            return self.database.execute(sql, (stream, start or 0, end or 2**62)).fetchall()

    def metrics_of(self, backend: CloudWatchBackend) -> StoredMetrics:
        owner = f"{backend.account_id}/{backend.region_name}"
        with self.lock:
            if owner not in self.metrics:
                self.metrics[owner] = StoredMetrics(self, owner)
            return self.metrics[owner]


_journal: Any = None  # a Journal while one is open


def open_journal(path: Path) -> None:
    """Store events and metrics in this file from now on. Raises sqlite3.DatabaseError."""
    global _journal
    _journal = Journal(path)
    moto_logs.LogStream = StoredLogStream  # type: ignore[misc]


def forget_deleted_streams() -> None:
    """Remove the events of streams that are deleted. Called once moto's state is restored."""
    streams = {
        stream.id
        for regions in moto_logs.logs_backends.values()
        for backend in regions.values()
        for group in backend.groups.values()
        for stream in group.streams.values()
        if isinstance(stream, StoredLogStream)
    }
    journal = _journal
    with journal.lock:
        rows = journal.database.execute("SELECT DISTINCT stream FROM events").fetchall()
        for stream in {stream for (stream,) in rows} - streams:
            journal.database.execute("DELETE FROM events WHERE stream=?", (stream,))


class StreamLog:
    """A stream of a group; both are made with the first line, as on AWS.

    state: MotoState, to save what is made; None where moto is not in this process.
    """

    def __init__(self, state: Any, region: str, group: str, stream: str) -> None:
        self.state, self.region, self.group, self.stream = state, region, group, stream
        self.opened = state is None

    @property
    def backend(self) -> Any:
        return moto_logs.logs_backends[DEFAULT_ACCOUNT_ID][self.region]

    def open(self) -> None:
        if self.opened:
            return
        with self.state.lock:
            if self.group not in self.backend.groups:
                self.backend.create_log_group(self.group, {})
            if self.stream not in self.backend.groups[self.group].streams:
                self.backend.create_log_stream(self.group, self.stream)
                self.state.save()
        self.opened = True

    def write(self, lines: list[str], time_ms: int | None = None) -> None:
        """Add lines. What cannot be stored is noted in the emulator's own log.

        time_ms: Unix milliseconds; by default now. CloudWatch takes no empty line: it becomes a
        blank.
        """
        at = time_ms or int(time.time() * 1000)
        events = [{"timestamp": at, "message": line or " "} for line in lines]
        try:
            self.open()
            if self.state:
                self.backend.put_log_events(self.group, self.stream, events)
        except OSError as error:
            LOG.warning("%s/%s: %s", self.group, self.stream, error)

    def log(self, message: str) -> None:
        """Add a line of the emulator's own."""
        self.write([f"[local] {message}"])


def put_metrics(region: str, namespace: str, data: list[dict]) -> None:
    """Add metric values, as PutMetricData takes them; Timestamp is UTC and naive, as moto's."""
    cloudwatch_backends[DEFAULT_ACCOUNT_ID][region].put_metric_data(namespace, data)


class StoredLogStream(_MotoLogStream):
    """moto's log stream, but its events are in the journal."""

    def __init__(self, log_group: moto_logs.LogGroup, name: str) -> None:
        super().__init__(log_group, name)
        self.id = uuid.uuid4().hex

    def _update(self) -> None:
        """Nothing: moto would look for times in the events that it does not have."""

    def put_log_events(self, log_events: list[dict[str, Any]]) -> str:
        if self.stored_bytes <= STREAM_LIMIT:
            self.stored_bytes += sum(len(event["message"]) for event in log_events)
            if self.stored_bytes > STREAM_LIMIT:
                log_events = [*log_events, log_events[-1] | {"message": FULL}]
            _journal.add(self.id, log_events)
        return f"{1:056d}"

    def get_log_events(
        self,
        start_time: Any,
        end_time: Any,
        limit: Any,
        next_token: str | None,
        start_from_head: Any,
    ) -> tuple[list[dict[str, Any]], str, str]:
        selection = (self.id, start_time, end_time)
        ((count,),) = _journal.select("count(*)", *selection)
        limit = min(limit or PAGE, PAGE)
        if next_token is None:
            start = 0 if start_from_head else max(0, count - limit)
        elif next_token[:2] == "f/" and next_token[2:].isdigit():
            start = min(int(next_token[2:]), count)
        elif next_token[:2] == "b/" and next_token[2:].isdigit():
            end = int(next_token[2:])
            start, limit = max(0, end - limit), min(limit, end)
        else:
            raise InvalidParameterException("The specified nextToken is invalid.")
        page = f"ORDER BY time, number LIMIT {limit} OFFSET {start}"
        rows = _journal.select("time, message, ingested", *selection, page)
        events = [
            {"timestamp": time, "message": message, "ingestionTime": ingested}
            for time, message, ingested in rows
        ]
        return events, f"b/{start:056d}", f"f/{start + len(rows):056d}"

    def filter_log_events(
        self, start_time: int, end_time: int, filter_pattern: str
    ) -> list[dict[str, Any]]:
        pattern = EventMessageFilter(filter_pattern)
        selection = (self.id, start_time, end_time, "ORDER BY time, number")
        return [
            {
                "eventId": str(number),
                "timestamp": time,
                "message": message,
                "ingestionTime": ingested,
                "logStreamName": self.log_stream_name,
            }
            for time, message, ingested, number in _journal.select(
                "time, message, ingested, number", *selection
            )
            if pattern.matches(message)
        ]


@patch(LogsResponse, "filter_log_events")
def _filter_log_events(moto_filter: Callable, self: LogsResponse) -> str:
    """moto's, with the logStreamNamePrefix that it lacks."""
    prefix = self._get_param("logStreamNamePrefix")
    group = self.logs_backend.groups.get(self._get_param("logGroupName"))
    if prefix and group:
        names = [name for name in group.streams if name.startswith(prefix)]
        # Where there is none, a name that no stream has: an empty list would mean all of them.
        self.body = json.dumps(json.loads(self.body) | {"logStreamNames": names or ["*"]})
    return moto_filter(self)


class StoredMetrics(list):
    """The metric values of one account and region: what is appended is in the journal, too."""

    def __init__(self, journal: Journal, owner: str) -> None:
        rows = journal.database.execute("SELECT datum FROM metrics WHERE owner=?", (owner,))
        super().__init__(pickle.loads(raw) for (raw,) in rows.fetchall())
        self.journal, self.owner = journal, owner

    def append(self, datum: Any) -> None:
        row = (self.owner, pickle.dumps(datum))
        with full_disk_as_os_error(), self.journal.lock:
            self.journal.database.execute("INSERT INTO metrics VALUES (?,?)", row)
            super().append(datum)


def _metric_data(self: CloudWatchBackend) -> list:
    return _journal.metrics_of(self) if _journal else self.__dict__["metric_data"]


CloudWatchBackend.metric_data = property(  # type: ignore[assignment]
    _metric_data, lambda self, values: self.__dict__.update(metric_data=values)
)
