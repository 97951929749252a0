"""A job's record: its steps, also when they come at the wrong moment or the disk is full."""

import errno
import json
import os
import subprocess
import sys
import time
from unittest import mock

import pytest
from botocore.credentials import Credentials
from emulator_harness import request
from nobody_helpers import run_as_nobody

from local_sagemaker.api.training import TrainingJobs, description
from local_sagemaker.core.aws import REGION, LocalAws
from local_sagemaker.storage import files
from local_sagemaker.training.job_record import JobRecord

HOUR = 3600.0


def make_record(tmp_path) -> JobRecord:
    return JobRecord.create(tmp_path / "a-job", request("a-job"), arn="arn", region=REGION)


@pytest.fixture
def record(tmp_path):
    return make_record(tmp_path)


def steps(record: JobRecord) -> list[str]:
    return [transition["Status"] for transition in record.data["transitions"]]


def test_each_step_is_on_disk_at_once(record):
    for step in ("Downloading", "Training"):
        record.enter(step)
        assert steps(JobRecord.read(record.path)) == steps(record)
    assert steps(record) == ["Starting", "Downloading", "Training"]
    ends = [transition.get("EndTime") for transition in record.data["transitions"]]
    assert ends[0] and ends[1] and ends[2] is None


def test_told_to_stop_it_goes_to_no_other_step(record):
    """The job's thread may be between two steps at that moment."""
    assert record.stopping()
    assert not record.stopping()
    for step in ("Downloading", "Training", "Uploading"):
        record.enter(step)
    record.end("Stopped")
    assert steps(record) == ["Starting", "Stopping", "Stopped"]
    assert "started" in record.data
    assert not record.stopping()


def test_the_first_end_is_the_end(record):
    record.end("Failed", reason="x" * 2000)
    record.end("Completed")
    message = description(record)
    assert (message["TrainingJobStatus"], message["SecondaryStatus"]) == ("Failed", "Failed")
    assert len(message["FailureReason"]) == 1024
    assert message["SecondaryStatusTransitions"][-1]["EndTime"] == record.data["ended"]


def times(data: dict) -> list[float]:
    """Every time of a job, in the order in which they were written."""
    steps = [(step["StartTime"], step["EndTime"]) for step in data["transitions"]]
    return [data["created"], *(moment for step in steps for moment in step), data["ended"]]


@pytest.mark.parametrize("hours", [(-1, 0), (1, -1)], ids=str)
def test_a_records_times_never_go_back(record, monkeypatch, hours):
    """The machine's clock is set while a job runs."""
    real, shift = time.time, [0.0]
    monkeypatch.setattr(time, "time", lambda: real() + shift[0])
    record.enter("Downloading")
    for step, change in zip(("Training", "Uploading"), hours, strict=True):
        shift[0] += change * HOUR
        record.enter(step)
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


def test_no_bill_for_a_job_that_never_started(record):
    record.end("Failed")
    assert "BillableTimeInSeconds" not in description(record)


def test_on_a_full_disk_a_job_still_ends(record, monkeypatch):
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(files.os, "fsync", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match="No space left"):
        record.end("Failed", reason="why")
    assert record.ended
    assert description(record)["FailureReason"] == "why"
    assert JobRecord.read(record.path).status == "InProgress"


def test_a_record_that_was_ruined_takes_no_other_with_it(tmp_path, record, caplog):
    record.end("Completed")
    for number, text in enumerate(["", "{}", "[]", '{"request": {}}', "\0"]):
        (tmp_path / f"ruined-{number}").mkdir()
        (tmp_path / f"ruined-{number}" / "record.json").write_text(text)
    jobs = TrainingJobs(tmp_path, LocalAws(1, Credentials("KEY", "s")), "processes", 1.0)
    assert [item.name for item in jobs.in_region(REGION)] == ["a-job"]
    assert caplog.text.count("is damaged") == 5


def test_what_a_crash_left_is_cleaned_up(tmp_path, record):
    (tmp_path / "a-job/algo-1/ml").mkdir(parents=True)
    (tmp_path / "a-job/cluster.json").write_text("{}")
    jobs = TrainingJobs(tmp_path, LocalAws(1, Credentials("KEY", "s")), "processes", 1.0)
    assert jobs.find("a-job", REGION).status == "Failed"
    assert os.listdir(tmp_path / "a-job") == ["record.json"]
    assert json.loads((tmp_path / "a-job/record.json").read_text())["status"] == "Failed"


REMOVE = """
import pathlib
from local_sagemaker.storage.files import remove
folder = pathlib.Path(sys.argv[2], "algo-1")
(folder / "layer/work/work").mkdir(parents=True)
(folder / "layer/work/work").chmod(0)
(folder / "ml/model/closed").mkdir(parents=True)
(folder / "ml/model/closed/file").write_text("x")
mine = pathlib.Path(sys.argv[2], "mine")
mine.touch(0o644)
(folder / "ml/model/closed/link").symlink_to(mine)
(folder / "ml/model/closed").chmod(0o500)
(folder / "ml/a/b/c").mkdir(parents=True)
for name in ("ml/a/b/c", "ml/a/b", "ml/a", "ml"):
    (folder / name).chmod(0)
os.chdir(sys.argv[2])
for depth in range(1500):  # a depth that Python's own functions do not reach
    os.mkdir("deep")
    os.chdir("deep")
os.chdir(sys.argv[2])
os.rename("deep", "algo-1/deep")
remove(folder)
print(os.getuid(), folder.exists(), oct(mine.stat().st_mode & 0o777))
"""


def test_an_ordinary_user_can_remove_what_is_closed(tmp_path):
    """An overlay leaves a directory that nobody but root may read, and a script whatever it likes.

    What links lead to keeps its mode.
    """
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o777)
    if os.geteuid() == 0:
        done = run_as_nobody(REMOVE, tmp_path, str(state))
    else:
        command = [sys.executable, "-c", f"import os, sys{REMOVE}", "", str(state)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout.split()[1:] == ["False", "0o644"], done.stderr
