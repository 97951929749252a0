"""What moto holds outlives the emulator; what cannot be saved or read says so. And a job's log."""

import errno
import logging
import os
import time
from unittest import mock

import pytest

from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.job_events import LOG_GROUP, JobEvents
from local_sagemaker.moto_backend import logs as journal

START = int(time.time() * 1000) - 60_000  # Unix milliseconds


def messages(page: dict) -> list[str]:
    return [event["message"] for event in page["events"]]


def test_log_lines_and_metric_values(life):
    where = {"logGroupName": "group", "logStreamName": "stream"}
    events = [{"timestamp": START + n, "message": f"line {n}"} for n in range(30)]
    values = [{"MetricName": "loss", "Value": 0.5}, {"MetricName": "loss", "Value": 0.25}]
    with life() as now:
        logs = now.client("logs")
        logs.create_log_group(logGroupName="group")
        logs.create_log_stream(**where)
        now.save()  # and not again: lines and values do not wait for it
        logs.put_log_events(**where, logEvents=events[:20])
        logs.put_log_events(**where, logEvents=events[20:])
        now.client("cloudwatch").put_metric_data(Namespace="job", MetricData=values)
    with life() as now:
        logs = now.client("logs")
        page = logs.get_log_events(**where, startFromHead=True, limit=10)
        lines = messages(page)
        while page["events"]:  # as the SDK does: on to where it ended
            page = logs.get_log_events(**where, nextToken=page["nextForwardToken"])
            lines += messages(page)
        assert lines == [f"line {n}" for n in range(30)]
        assert messages(logs.get_log_events(**where, limit=2)) == ["line 28", "line 29"]
        between = {"startTime": events[3]["timestamp"], "endTime": events[5]["timestamp"]}
        assert len(logs.get_log_events(**where, **between)["events"]) == 3
        hits = logs.filter_log_events(logGroupName="group", filterPattern='"29"')["events"]
        assert [hit["logStreamName"] for hit in hits] == ["stream"]
        metrics = now.client("cloudwatch").list_metrics(Namespace="job")["Metrics"]
        assert {metric["MetricName"] for metric in metrics} == {"loss"}
        logs.delete_log_group(logGroupName="group")
        now.save()
    with life() as now:
        assert journal._journal.database.execute("SELECT count(*) FROM events").fetchone() == (0,)


def test_a_log_stream_has_a_most(life, monkeypatch):
    monkeypatch.setattr(journal, "STREAM_LIMIT", 100)
    where = {"logGroupName": "group", "logStreamName": "stream"}
    with life() as now:
        logs = now.client("logs")
        logs.create_log_group(logGroupName="group")
        logs.create_log_stream(**where)
        for number in range(20):
            line = {"timestamp": START + number, "message": "x" * 30}
            logs.put_log_events(**where, logEvents=[line])
        assert messages(logs.get_log_events(**where)) == ["x" * 30] * 4 + [journal.FULL]


def test_a_jobs_streams_are_one_log_and_late_lines_are_not_lost(life):
    """In the order of time, each line once, as `local-sagemaker logs` prints it."""
    with life() as now:
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


def test_every_service_with_its_locks_and_private_keys(life):
    """moto's SQS holds a lock and its KMS private keys, which pickle does not take by itself."""
    with life() as now:
        now.client("sqs").create_queue(QueueName="queue")
        key = now.client("kms").create_key()["KeyMetadata"]["KeyId"]
        now.client("kms").create_alias(AliasName="alias/k", TargetKeyId=key)
        now.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")
        now.s3.create_bucket(Bucket="bucket")
        enabled = {"Status": "Enabled"}
        now.s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration=enabled)
        now.save()
    with life() as now:
        assert now.s3.get_bucket_versioning(Bucket="bucket")["Status"] == "Enabled"
        assert now.client("sqs").list_queues()["QueueUrls"][0].endswith("/queue")
        api = now.client("kms")
        encrypted = api.encrypt(KeyId="alias/k", Plaintext=b"secret")["CiphertextBlob"]
        assert api.decrypt(CiphertextBlob=encrypted)["Plaintext"] == b"secret"
        assert now.client("iam").get_role(RoleName="role")["Role"]["RoleName"] == "role"


def test_a_service_that_cannot_be_kept_takes_no_other_with_it(life, caplog):
    with life() as now, caplog.at_level(logging.ERROR):
        now.client("ssm").put_parameter(Name="p", Value="v", Type="String")
        now.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")
        now.save()
        now.save()
    assert caplog.text.count("ssm will not outlive this process") == 1
    with life() as now:
        assert now.client("iam").get_role(RoleName="role")["Role"]["RoleName"] == "role"


def test_a_bucket_is_not_made_a_second_time(life):
    """moto keeps beside its buckets which names are taken."""
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration={"Status": "Enabled"})
        now.save()
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")  # the answer of us-east-1 to who has it already
        assert now.s3.get_bucket_versioning(Bucket="bucket")["Status"] == "Enabled"


def test_a_save_that_failed_changes_nothing(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.save()
        now.s3.create_bucket(Bucket="refused")
        now.client("iam").create_role(RoleName="refused", AssumeRolePolicyDocument="{}")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
            full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            patch.setattr(os, "fsync", mock.Mock(side_effect=full))
            now.save()
        assert now.client("iam").list_roles()["Roles"] == []
        now.save()
    with life() as now:
        assert [bucket["Name"] for bucket in now.s3.list_buckets()["Buckets"]] == ["bucket"]
        assert now.client("iam").list_roles()["Roles"] == []


DAMAGES = [
    (lambda raw: b"moto 0.0.1\n" + raw.split(b"\n", 1)[1], "was written by moto 0.0.1"),
    (lambda raw: raw[: len(raw) // 2], "cannot be read"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES, ids=["version", "cut"])
def test_a_state_that_cannot_be_used(life, tmp_path, damage, reason):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.save()
    path = tmp_path / "moto.pickle"
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(EmulatorError, match=reason) as caught, life():
        pass
    assert "`local-sagemaker stop --forget`" in str(caught.value)
    assert path.read_bytes() == damaged
