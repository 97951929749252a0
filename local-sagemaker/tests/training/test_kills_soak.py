"""kill -9 under writers, again and again: nothing that was acknowledged is lost."""

from __future__ import annotations

import hashlib
import itertools
import random
import threading
import time

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from test_crash import die

from local_sagemaker.pytest_plugin import BUCKET, Emulator

KILLS = 20
PART = 5 * 1024**2  # bytes; the least that S3 takes
GROUP = {"logGroupName": "soak"}


class Writers:
    """What was acknowledged: objects (key -> SHA-256; None: deleted), log lines, roles."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator, self.numbers = emulator, itertools.count()
        self.objects: dict[str, str | None] = {}
        self.lines: list[str] = []
        self.roles: list[str] = []

    def client(self, name: str):
        env = self.emulator.env
        return boto3.Session(
            env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1"
        ).client(
            name,
            endpoint_url=env["AWS_ENDPOINT_URL"],
            config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
        )

    def until_killed(self, seconds: float) -> None:
        """Write by all hands; kill the emulator after so long; wait until all have noticed."""
        calls = ("s3", "s3", "logs", "iam")
        clients = [self.client(name) for name in calls]
        acts = [self.put, self.part, self.log, self.role]
        threads = [
            threading.Thread(target=self._repeat, args=pair)
            for pair in zip(acts, clients, strict=True)
        ]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        die(self.emulator)
        for thread in threads:
            thread.join()

    def _repeat(self, act, client) -> None:
        try:
            while True:
                act(client, next(self.numbers))
        except (BotoCoreError, ClientError):  # the emulator is gone
            return

    def put(self, s3, number: int) -> None:
        body = random.randbytes(random.choice((0, 100, 300_000)))
        s3.put_object(Bucket=BUCKET, Key=f"put-{number}", Body=body)
        self.objects[f"put-{number}"] = hashlib.sha256(body).hexdigest()
        if number % 3 == 0:
            del self.objects[f"put-{number}"]  # while it is not known whether it is there
            s3.delete_object(Bucket=BUCKET, Key=f"put-{number}")
            self.objects[f"put-{number}"] = None

    def part(self, s3, number: int) -> None:
        where = {"Bucket": BUCKET, "Key": f"parts-{number}"}
        upload = s3.create_multipart_upload(**where)["UploadId"]
        parts, hashed = [], hashlib.sha256()
        for part, size in ((1, PART), (2, 1000)):
            body = random.randbytes(size)
            hashed.update(body)
            response = s3.upload_part(**where, UploadId=upload, PartNumber=part, Body=body)
            parts.append({"PartNumber": part, "ETag": response["ETag"]})
        s3.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
        self.objects[where["Key"]] = hashed.hexdigest()

    def log(self, logs, number: int) -> None:
        event = {"timestamp": int(1000 * time.time()), "message": f"line {number}"}
        logs.put_log_events(**GROUP, logStreamName="stream", logEvents=[event])
        self.lines.append(event["message"])

    def role(self, iam, number: int) -> None:
        iam.create_role(RoleName=f"role-{number}", AssumeRolePolicyDocument="{}")
        self.roles.append(f"role-{number}")
        time.sleep(0.1)

    def check(self) -> None:
        """Raise AssertionError for what was acknowledged and is not there."""
        s3 = self.client("s3")
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        listed = {row["Key"] for page in pages for row in page.get("Contents", [])}
        for key, hashed in self.objects.items():
            assert (key in listed) == (hashed is not None), key
            if hashed:
                body = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
                assert hashlib.sha256(body).hexdigest() == hashed, key
        result, token, logs = set(), {}, self.client("logs")
        while True:
            response = logs.get_log_events(
                **GROUP, logStreamName="stream", startFromHead=True, **token
            )
            result |= {event["message"] for event in response["events"]}
            if not response["events"]:
                break
            token = {"nextToken": response["nextForwardToken"]}
        assert set(self.lines) <= result
        roles = self.client("iam").get_paginator("list_roles").paginate()
        assert set(self.roles) <= {role["RoleName"] for page in roles for role in page["Roles"]}


@pytest.mark.soak
def test_nothing_acknowledged_is_lost(tmp_path, request):
    emulator = Emulator(tmp_path / "state", ["--grace", "1"])
    request.addfinalizer(emulator.down)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    emulator.client("logs").create_log_group(**GROUP)
    emulator.client("logs").create_log_stream(**GROUP, logStreamName="stream")
    writers = Writers(emulator)
    for number in range(KILLS):
        writers.until_killed(random.uniform(0.5, 2.5))
        emulator.up()
        writers.check()
        counts = (len(item) for item in (writers.objects, writers.lines, writers.roles))
        print(f"kill {number + 1}: objects, lines, roles", *counts)
    saved = [hashed for hashed in writers.objects.values() if hashed]
    assert len(saved) > KILLS and len(writers.lines) > KILLS and len(writers.roles) > KILLS
