"""A disk that is really full, and nowhere for temporary files: said plainly, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import uuid
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from emulator_harness import request
from moto_life import lives

import local_sagemaker
from local_sagemaker.pytest_plugin import BUCKET

PACKAGES = Path(local_sagemaker.__file__).parents[1]
MEGABYTE = 1 << 20
START_SECONDS = 120
COMMAND = str(Path(sys.executable).with_name("local-sagemaker"))
WORKSHOP = str(Path(sys.executable).with_name("workshop"))
NOWHERE = "mount -t tmpfs -o ro tmpfs /tmp && mount -t tmpfs -o ro tmpfs /var/tmp && cd /proc"

pytestmark = pytest.mark.namespaces


def there(mounts: str, *program: str, **variables: str) -> dict:
    """What subprocess needs to run `program` after the shell commands `mounts`, which nobody else
    sees."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    return {
        "args": [*unshare, f'{mounts} && exec "$@"', "sh", *program],
        "env": {**kept, "PYTHONPATH": str(PACKAGES), **variables},
    }


def run(mounts: str, *program: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a program to its end there."""
    how = there(mounts, *program, **variables)
    return subprocess.run(**how, capture_output=True, text=True, timeout=240)


ENABLED = {"Status": "Enabled"}
TEMPLATE = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})


class EndpointThere:
    """An endpoint whose process runs after `mounts`. state: as it sees it."""

    def __init__(self, mounts: str, state: str, **variables: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.state = state
        program = [sys.executable, "-m", "local_sagemaker", "--state", state, "--grace", "1"]
        program += ["--port", str(self.port), "--isolation", "processes"]
        self.process = subprocess.Popen(
            **there(mounts, *program, **variables),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        self._until_it_answers()

    def _until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.client("s3").list_buckets()
                return
            except (BotoCoreError, FileNotFoundError):  # the second: its key is not there yet
                assert self.process.poll() is None, self.process.stderr.read()
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def client(self, service: str):
        """A client that tries again nothing: what the first answer is, matters here."""
        key = json.loads(self.inside(f"{self.state}/credentials.json").read_text())
        return boto3.client(
            service,
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=key["access_key_id"],
            aws_secret_access_key=key["secret_access_key"],
            config=Config(retries={"total_max_attempts": 1}, read_timeout=60, proxies={}),
        )

    def inside(self, path: str) -> Path:
        """A path of its mounts, as this process reaches it."""
        return Path(f"/proc/{self.process.pid}/root{path}")

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stderr.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """An endpoint on a disk of 8 megabytes."""
    folder = tmp_path_factory.mktemp("small")
    one = EndpointThere(f"mount -t tmpfs -o size=8m tmpfs {folder}", f"{folder}/state")
    one.disk = one.inside(str(folder))
    yield one
    one.end()


def fill(s3) -> ClientError:
    """Put objects of a megabyte until one is refused; the refusal."""
    with pytest.raises(ClientError) as caught:
        for number in range(20):
            s3.put_object(Bucket="bucket", Key=f"filler-{number}", Body=bytes(MEGABYTE))
    return caught.value


def test_a_job_on_a_full_disk_fails_and_says_why(small):
    api, s3 = small.client("sagemaker"), small.client("s3")
    s3.create_bucket(Bucket="lessons-data")
    s3.put_object(Bucket="lessons-data", Key="data/large", Body=bytes(3 * MEGABYTE))
    for number in range(2):  # so that there is no room for a second copy
        s3.put_object(Bucket="lessons-data", Key=f"filler-{number}", Body=bytes(MEGABYTE))
    name = f"needs-room-{uuid.uuid4().hex[:8]}"
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://lessons-data/data/"}
    channel = {"ChannelName": "training", "DataSource": {"S3DataSource": source}}
    api.create_training_job(**request(name, InputDataConfig=[channel]))
    deadline = time.monotonic() + 120
    while (told := api.describe_training_job(TrainingJobName=name))["TrainingJobStatus"] in (
        "InProgress",
        "Stopping",
    ):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert told["TrainingJobStatus"] == "Failed"
    assert "No space left on device" in told["FailureReason"]
    assert not list((small.disk / "state" / "jobs" / name).glob("algo-*"))
    for key in ("data/large", "filler-0", "filler-1"):  # room for the next test
        s3.delete_object(Bucket="lessons-data", Key=key)


def test_a_full_disk_refuses_and_keeps_what_was_there(small, tmp_path_factory):
    s3 = small.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="before", Body=b"precious")
    error = fill(s3).response
    assert error["Error"]["Code"] == "InsufficientStorage"
    assert error["ResponseMetadata"]["HTTPStatusCode"] == 507
    for words in ("the disk is full", "What it had before is kept", "`local-sagemaker status`"):
        assert words in error["Error"]["Message"]
    filler = small.disk / "filler"  # and now to the last byte
    with pytest.raises(OSError, match="No space left"), filler.open("wb", buffering=0) as stream:
        while stream.write(bytes(4096)):
            pass
    with pytest.raises(ClientError, match="the disk is full"):
        small.client("sagemaker").create_training_job(**request(f"full-{uuid.uuid4().hex[:8]}"))
    assert s3.get_object(Bucket="bucket", Key="before")["Body"].read() == b"precious"
    iam, stacks = small.client("iam"), small.client("cloudformation")
    for refused in (
        lambda: iam.create_role(RoleName="full", AssumeRolePolicyDocument="{}"),
        lambda: s3.create_bucket(Bucket="full"),
        lambda: stacks.create_stack(StackName="full", TemplateBody=TEMPLATE),
        lambda: s3.put_bucket_versioning(Bucket="bucket", VersioningConfiguration=ENABLED),
    ):
        with pytest.raises(ClientError, match="the disk is full"):
            refused()
    filler.unlink()
    iam.create_role(RoleName="after", AssumeRolePolicyDocument="{}")
    own = "local-sagemaker-training-role"  # the endpoint's key is a session of it
    assert {one["RoleName"] for one in iam.list_roles()["Roles"]} - {own} == {"after"}
    assert {one["Name"] for one in s3.list_buckets()["Buckets"]} - {BUCKET} == {"bucket"}
    assert stacks.describe_stacks()["Stacks"] == []
    assert "Status" not in s3.get_bucket_versioning(Bucket="bucket")
    s3.create_bucket(Bucket="full")
    for number in range(4):
        s3.delete_object(Bucket="bucket", Key=f"filler-{number}")
    s3.put_object(Bucket="bucket", Key="after", Body=bytes(MEGABYTE))
    copy = tmp_path_factory.mktemp("copy") / "state"
    shutil.copytree(small.disk / "state", copy, ignore=shutil.ignore_patterns("emulator.json"))
    with lives(copy / "moto")() as again:
        assert "bucket" in [one["Name"] for one in again.s3.list_buckets()["Buckets"]]
        store = again.state.objects
        found = store.latest("bucket", "before")
        assert b"".join(store.blobs.read(found.segments, 0, found.size)) == b"precious"


@pytest.mark.parametrize("kilobytes", [0, 8, 40, 100])
def test_up_on_a_full_disk_says_so(tmp_path, kilobytes):
    """And not to start afresh: what is there is whole."""
    fill = f"head -c {2048 - kilobytes}k /dev/zero > {tmp_path}/filler"
    mounts = f"mount -t tmpfs -o size=2m tmpfs {tmp_path} && {fill}"
    done = run(
        mounts, COMMAND, "start", "--port", "0", LOCAL_SAGEMAKER_STATE_DIR=f"{tmp_path}/state"
    )
    assert done.returncode == 1, done.stdout
    assert re.search("No space left|disk .* is full", done.stderr), done.stderr
    assert "--forget" not in done.stderr and "Traceback" not in done.stderr


@pytest.mark.soak
def test_the_endpoint_needs_no_tmp(tmp_path, request):
    """Large bodies pass through temporary files: those lie in the state directory."""
    one = EndpointThere(
        f"mount --bind {tmp_path} /mnt && {NOWHERE}", "/mnt/state", TMPDIR="/proc/no"
    )
    request.addfinalizer(one.end)
    s3, body = one.client("s3"), bytes(range(256)) * 4096 * 20
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="large", Body=body)
    assert s3.get_object(Bucket="bucket", Key="large")["Body"].read() == body


@pytest.mark.soak
def test_doctor_names_a_missing_place_for_temporary_files(tmp_path):
    home = {"HOME": "/mnt", "LOCAL_SAGEMAKER_STATE_DIR": "/mnt/state", "TMPDIR": "/proc/no"}
    done = run(f"mount --bind {tmp_path} /mnt && {NOWHERE}", WORKSHOP, "doctor", **home)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    assert done.returncode == 1, done.stdout
    assert "no folder for temporary files" in done.stdout and "TMPDIR" in done.stdout


@pytest.mark.parametrize("kilobytes", [0, 60])
def test_data_prep_on_a_full_disk_leaves_nothing(tmp_path, kilobytes):
    fill = f"head -c {64 - kilobytes}k /dev/zero > {tmp_path}/mine"
    mounts = f"mount -t tmpfs -o size=64k tmpfs {tmp_path} && {fill}"
    program = f"{sys.executable} -m data_prep digits --out {tmp_path}/digits; echo $?; "
    done = run(mounts, "sh", "-c", f"{program} ls -A {tmp_path}")
    assert "with enough free space" in done.stderr and "--out FOLDER" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.split() == ["1", "mine"]
