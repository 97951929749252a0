"""kill -9 under writers, again and again: nothing that was acknowledged is lost."""

import hashlib
import io
import itertools
import random
import threading
import time

import pytest
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError
from emulator_harness import client_of
from test_crash import die

from local_sagemaker.pytest_plugin import BUCKET, Emulator

KILLS = 20
PART = 5 * 1024**2  # bytes; the least that S3 takes
IN_PARTS = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
GROUP = {"logGroupName": "soak"}


class Writers:
    """What was acknowledged: objects (key -> SHA-256; None: deleted), log lines, roles."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator, self.numbers = emulator, itertools.count()
        self.objects: dict[str, str | None] = {}
        self.lines: list[str] = []
        self.roles: list[str] = []

    def until_killed(self, seconds: float) -> None:
        """Write by all hands; kill the emulator after so long; wait until all have noticed."""
        acts = {self.put: "s3", self.part: "s3", self.log: "logs", self.role: "iam"}
        threads = [
            threading.Thread(target=self._repeat, args=(act, client_of(self.emulator, service)))
            for act, service in acts.items()
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
        except (Boto3Error, BotoCoreError, ClientError):  # the emulator is gone
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
        key, body = f"parts-{number}", random.randbytes(PART + 1000)
        s3.upload_fileobj(io.BytesIO(body), BUCKET, key, Config=IN_PARTS)
        self.objects[key] = hashlib.sha256(body).hexdigest()

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
        s3 = self.emulator.client("s3")
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        listed = {row["Key"] for page in pages for row in page.get("Contents", [])}
        for key, hashed in self.objects.items():
            assert (key in listed) == (hashed is not None), key
            if hashed:
                body = s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
                assert hashlib.sha256(body).hexdigest() == hashed, key
        pages = self.emulator.client("logs").get_paginator("filter_log_events").paginate(**GROUP)
        assert set(self.lines) <= {event["message"] for page in pages for event in page["events"]}
        roles = self.emulator.client("iam").get_paginator("list_roles").paginate()
        assert set(self.roles) <= {role["RoleName"] for page in roles for role in page["Roles"]}


@pytest.mark.soak
def test_nothing_acknowledged_is_lost(mortal):
    mortal.client("logs").create_log_group(**GROUP)
    mortal.client("logs").create_log_stream(**GROUP, logStreamName="stream")
    writers = Writers(mortal)
    for number in range(KILLS):
        writers.until_killed(random.uniform(0.5, 2.5))
        mortal.up()
        writers.check()
        counts = (len(item) for item in (writers.objects, writers.lines, writers.roles))
        print(f"kill {number + 1}: objects, lines, roles", *counts)
    saved = [hashed for hashed in writers.objects.values() if hashed]
    assert len(saved) > KILLS and len(writers.lines) > KILLS and len(writers.roles) > KILLS
