"""The machine's clock is set while a job runs: its times never go back, and it is not cut short."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from emulator_harness import request

from local_sagemaker.training.job_record import JobRecord

HOUR = 3600.0


def make_record(tmp_path: Path) -> JobRecord:
    return JobRecord.create(tmp_path / "job", request("a-job"), arn="arn", region="us-east-1")


def times(data: dict) -> list[float]:
    """Every time of a job, in the order in which they were written."""
    steps = [(step["StartTime"], step["EndTime"]) for step in data["transitions"]]
    return [data["created"], *(time for step in steps for time in step), data["ended"]]


@pytest.mark.parametrize("steps", [(-HOUR, 0), (HOUR, -HOUR)], ids=str)
def test_a_records_times_never_go_back(tmp_path, monkeypatch, steps):
    real, shift = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    record = make_record(tmp_path)
    record.enter("Downloading")
    shift[0] += steps[0]
    record.enter("Training")
    shift[0] += steps[1]
    record.enter("Uploading")
    record.end("Completed")
    data = JobRecord.read(record.path).data
    assert times(data) == sorted(times(data))
    assert data["modified"] >= data["ended"]
    assert 0 <= data["seconds"] < 30, "measured, not computed from times"


def test_a_record_of_the_future_is_read_and_ended(tmp_path, monkeypatch):
    """The clock was ahead when the emulator was killed, and is right when it comes up again."""
    real = time.time
    with monkeypatch.context() as ahead:
        ahead.setattr(time, "time", lambda: real() + HOUR)
        record = make_record(tmp_path)
        record.enter("Downloading")
    again = JobRecord.read(record.path)
    again.end("Failed", reason="it was killed")
    assert times(again.data) == sorted(times(again.data))
