"""A job's log as `local-sagemaker logs` prints it: all streams in the order of time, lines once."""

from __future__ import annotations

import time

from moto_life import lives

from local_sagemaker.job_events import LOG_GROUP, JobEvents

START = int(time.time() * 1000) - 60_000  # Unix milliseconds


def test_streams_are_one_log_and_late_lines_are_not_lost(tmp_path):
    with lives(tmp_path)() as now:
        logs = now.client("logs")
        events = JobEvents(logs, "job")
        assert list(events.new()) == []
        logs.create_log_group(logGroupName=LOG_GROUP)
        for stream in ("job/algo-1-7", "job/algo-2-7", "job-2/algo-1-7"):
            logs.create_log_stream(logGroupName=LOG_GROUP, logStreamName=stream)

        def put(stream: str, *times: int) -> None:
            lines = [{"timestamp": START + at, "message": str(at)} for at in times]
            logs.put_log_events(logGroupName=LOG_GROUP, logStreamName=stream, logEvents=lines)

        put("job/algo-1-7", 1000, 3000)
        put("job/algo-2-7", 2000)
        put("job-2/algo-1-7", 2500)
        seen = [("algo-1", "1000"), ("algo-2", "2000"), ("algo-1", "3000")]
        assert list(events.new()) == seen
        put("job/algo-2-7", 2900)  # it came later than a line of a later time
        assert list(events.new()) == [("algo-2", "2900")]
        assert list(events.new()) == []
