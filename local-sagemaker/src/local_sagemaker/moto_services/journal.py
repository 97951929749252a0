"""What grows with every job, log lines and metric values, in SQLite instead of moto's memory.

moto keeps both in lists, and its state is written whole at each change. Here a line costs the
same whether it is the first or the millionth, in time and in memory.
"""

from __future__ import annotations

import datetime
import json
import pickle
import sqlite3
import threading
import uuid
from pathlib import Path
from typing import Any

import moto.logs.models as moto_logs
from moto.cloudwatch.models import CloudWatchBackend, MetricAggregatedDatum, MetricDatum
from moto.logs.exceptions import InvalidParameterException
from moto.logs.responses import LogsResponse
from moto.logs.utils import EventMessageFilter

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


class Journal:
    """The database; the process has one."""

    def __init__(self, path: Path | str = ":memory:") -> None:
        self.lock = threading.RLock()
        self.base = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.base.execute("PRAGMA journal_mode=WAL")
        # Of the last lines before the whole machine stops, some may be lost; of a killed
        # process's none.
        self.base.execute("PRAGMA synchronous=NORMAL")
        self.base.executescript(SCHEMA)
        self.number = self._value("SELECT coalesce(max(number), 0) FROM events")
        self.metrics: dict[str, StoredMetrics] = {}

    def _value(self, sql: str, *values: object) -> int:
        return self.base.execute(sql, values).fetchone()[0]

    def add(self, stream: str, events: list[dict], ingested: int) -> None:
        """Append events: {"timestamp": Unix milliseconds, "message": text}."""
        with self.lock:
            rows = []
            for one in events:
                self.number += 1
                rows.append((stream, one["timestamp"], self.number, ingested, one["message"]))
            self.base.execute("BEGIN")
            self.base.executemany("INSERT INTO events VALUES (?,?,?,?,?)", rows)
            self.base.execute("COMMIT")

    def select(self, what: str, stream: str, start: int | None, end: int | None, more: str = ""):
        """Rows of a stream's events from `start` to `end`, both included, by time."""
        sql = f"SELECT {what} FROM events WHERE stream=? AND time>=? AND time<=? {more}"
        low, high = start or 0, end if end else 2**62
        with self.lock:
            return self.base.execute(sql, (stream, low, high)).fetchall()

    def keep_only(self, streams: set[str]) -> None:
        """Forget the events of streams that are deleted."""
        with self.lock:
            there = {row[0] for row in self.base.execute("SELECT DISTINCT stream FROM events")}
            for one in there - streams:
                self.base.execute("DELETE FROM events WHERE stream=?", (one,))


_journal = Journal()


def open_journal(path: Path) -> None:
    """Keep events and metrics in this file from now on. Raises sqlite3.DatabaseError."""
    global _journal
    _journal = Journal(path)
    moto_logs.LogStream = StoredLogStream
    LogsResponse.filter_log_events = _filter_log_events
    CloudWatchBackend.metric_data = property(_metrics, lambda *_: None)


class StoredLogStream(moto_logs.LogStream):
    """moto's log stream, but its events are in the journal."""

    def __init__(self, log_group: moto_logs.LogGroup, name: str) -> None:
        super().__init__(log_group, name)
        self.id = uuid.uuid4().hex

    def _update(self) -> None:
        size, first, last, ingested = _journal.select(
            "coalesce(sum(length(message)), 0), min(time), max(time), max(ingested)",
            *(self.id, None, None),
        )[0]
        self.stored_bytes, self.first_event_timestamp = size, first
        self.last_event_timestamp, self.last_ingested = last, ingested

    def to_describe_dict(self) -> dict[str, Any]:
        told = super().to_describe_dict()
        if self.last_event_timestamp is not None:
            told |= {
                "storedBytes": self.stored_bytes,
                "firstEventTimestamp": self.first_event_timestamp,
                "lastEventTimestamp": self.last_event_timestamp,
                "lastIngestionTime": self.last_ingested,
                "uploadSequenceToken": "1",
            }
        return told

    def put_log_events(self, log_events: list[dict[str, Any]]) -> str:
        if self.stored_bytes <= STREAM_LIMIT:
            self.stored_bytes += sum(len(one["message"]) for one in log_events)
            if self.stored_bytes > STREAM_LIMIT:
                log_events = [*log_events, log_events[-1] | {"message": FULL}]
            now = int(datetime.datetime.now(datetime.UTC).timestamp() * 1000)
            _journal.add(self.id, log_events, now)
        return f"{1:056d}"

    def get_log_events(
        self, start_time, end_time, limit, next_token, start_from_head
    ) -> tuple[list[dict[str, Any]], str, str]:
        where = (self.id, start_time, end_time)
        ((count,),) = _journal.select("count(*)", *where)
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
        rows = _journal.select(
            "time, message, ingested", *where, f"ORDER BY time, number LIMIT {limit} OFFSET {start}"
        )
        events = [
            {"timestamp": time, "message": message, "ingestionTime": ingested}
            for time, message, ingested in rows
        ]
        return events, f"b/{start:056d}", f"f/{start + len(rows):056d}"

    def filter_log_events(
        self, start_time: int, end_time: int, filter_pattern: str
    ) -> list[dict[str, Any]]:
        wanted = EventMessageFilter(filter_pattern)
        rows = _journal.select(
            "time, message, ingested, number",
            *(self.id, start_time, end_time),
            "ORDER BY time, number",
        )
        return [
            {
                "eventId": str(number),
                "timestamp": time,
                "message": message,
                "ingestionTime": ingested,
                "logStreamName": self.log_stream_name,
            }
            for time, message, ingested, number in rows
            if wanted.matches(message)
        ]


_moto_filter = LogsResponse.filter_log_events


def _filter_log_events(self: LogsResponse) -> str:
    """moto's, with the logStreamNamePrefix that it lacks."""
    prefix = self._get_param("logStreamNamePrefix")
    group = self.logs_backend.groups.get(self._get_param("logGroupName"))
    if prefix and group:
        found = [name for name in group.streams if name.startswith(prefix)]
        # Where none is found, a name that no stream has: an empty list would mean all of them.
        self.body = json.dumps(json.loads(self.body) | {"logStreamNames": found or ["*"]})
    return _moto_filter(self)


def forget_deleted_streams() -> None:
    """Called once moto's state is restored."""
    streams = {
        stream.id
        for regions in moto_logs.logs_backends.values()
        for backend in regions.values()
        for group in backend.groups.values()
        for stream in group.streams.values()
        if isinstance(stream, StoredLogStream)
    }
    _journal.keep_only(streams)


class StoredMetrics(list):
    """The metric values of one account and region: what is appended is in the journal, too."""

    def __init__(self, owner: str) -> None:
        rows = _journal.base.execute("SELECT datum FROM metrics WHERE owner=?", (owner,))
        super().__init__(pickle.loads(raw) for (raw,) in rows.fetchall())
        self.owner = owner

    def append(self, one: MetricDatum | MetricAggregatedDatum) -> None:
        with _journal.lock:
            _journal.base.execute(
                "INSERT INTO metrics VALUES (?,?)", (self.owner, pickle.dumps(one))
            )
            super().append(one)


def _metrics(backend: CloudWatchBackend) -> StoredMetrics:
    owner = f"{backend.account_id}/{backend.region_name}"
    with _journal.lock:
        if owner not in _journal.metrics:
            _journal.metrics[owner] = StoredMetrics(owner)
        return _journal.metrics[owner]
