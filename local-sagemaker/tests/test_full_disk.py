"""A disk that is really full: the error says so, and nothing is lost."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import uuid
from pathlib import Path
from types import SimpleNamespace

import pytest
from botocore.exceptions import BotoCoreError, ClientError
from emulator_harness import client_of, request, until
from moto_life import life_in

import local_sagemaker
from local_sagemaker.pytest_plugin import BUCKET

PACKAGES = Path(local_sagemaker.__file__).parents[1]
MEGABYTE = 1 << 20
START_SECONDS = 120
COMMAND = str(Path(sys.executable).with_name("local-sagemaker"))

pytestmark = pytest.mark.namespaces


def in_mounts(mounts: str, *program: str, **variables: str) -> dict:
    """subprocess's arguments to run `program` after the shell commands `mounts`, in a mount
    namespace of its own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    return {
        "args": [*unshare, f'{mounts} && exec "$@"', "sh", *program],
        "env": {**env, "PYTHONPATH": str(PACKAGES), **variables},
    }


ENABLED = {"Status": "Enabled"}
TEMPLATE = json.dumps({"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}})


class EmulatorInMounts:
    """An emulator whose process runs after `mounts`. state: as it sees it."""

    def __init__(self, mounts: str, state: str, **variables: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.state = state
        program = [sys.executable, "-m", "local_sagemaker", "start", "--foreground"]
        program += ["--state", state, "--grace", "1"]
        program += ["--port", str(self.port), "--isolation", "processes"]
        self.process = subprocess.Popen(
            **in_mounts(mounts, *program, **variables),
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        until(self._answers, START_SECONDS)

    def _answers(self) -> bool:
        try:
            return bool(self.client("s3").list_buckets())
        except (BotoCoreError, FileNotFoundError):  # the second: its key is not there yet
            assert self.process.poll() is None, self.process.stderr.read()
            return False

    def client(self, service: str):
        """A client without retries: the first answer matters here."""
        key = json.loads(self.inside(f"{self.state}/credentials.json").read_text())
        env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}"}
        pair = (key["access_key_id"], key["secret_access_key"])
        return client_of(SimpleNamespace(env=env), service, *pair)

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
    """An emulator on a disk of 8 megabytes."""
    folder = tmp_path_factory.mktemp("small")
    emulator = EmulatorInMounts(f"mount -t tmpfs -o size=8m tmpfs {folder}", f"{folder}/state")
    emulator.disk = emulator.inside(str(folder))
    yield emulator
    emulator.end()


def test_a_job_on_a_full_disk_fails_and_says_why(small):
    api, s3 = small.client("sagemaker"), small.client("s3")
    s3.create_bucket(Bucket="lessons-data")
    s3.put_object(Bucket="lessons-data", Key="data/large", Body=bytes(3 * MEGABYTE))
    for number in range(2):  # too little space for a second copy
        s3.put_object(Bucket="lessons-data", Key=f"filler-{number}", Body=bytes(MEGABYTE))
    name = f"needs-space-{uuid.uuid4().hex[:8]}"
    source = {"S3DataType": "S3Prefix", "S3Uri": "s3://lessons-data/data/"}
    channel = {"ChannelName": "training", "DataSource": {"S3DataSource": source}}
    api.create_training_job(**request(name, InputDataConfig=[channel]))

    def now() -> dict:
        return api.describe_training_job(TrainingJobName=name)

    until(lambda: now()["TrainingJobStatus"] == "Failed", 120, now)
    assert "No space left on device" in now()["FailureReason"]
    assert not list((small.disk / "state" / "jobs" / name).glob("algo-*"))
    for key in ("data/large", "filler-0", "filler-1"):  # space for the next test
        s3.delete_object(Bucket="lessons-data", Key=key)


def test_a_full_disk_refuses_and_keeps_what_was_there(small, tmp_path_factory):
    s3 = small.client("s3")
    s3.create_bucket(Bucket="bucket")
    s3.put_object(Bucket="bucket", Key="before", Body=b"precious")
    with pytest.raises(ClientError) as caught:
        for number in range(20):
            s3.put_object(Bucket="bucket", Key=f"filler-{number}", Body=bytes(MEGABYTE))
    error = caught.value.response
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
    roles = {role["RoleName"] for role in iam.list_roles()["Roles"]}
    assert roles == {"local-sagemaker-training-role", "after"}  # the first is the emulator's own
    buckets = {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}
    assert buckets - {BUCKET} == {"bucket"}
    assert stacks.describe_stacks()["Stacks"] == []
    assert "Status" not in s3.get_bucket_versioning(Bucket="bucket")
    s3.create_bucket(Bucket="full")
    for number in range(4):
        s3.delete_object(Bucket="bucket", Key=f"filler-{number}")
    s3.put_object(Bucket="bucket", Key="after", Body=bytes(MEGABYTE))
    copy = tmp_path_factory.mktemp("copy") / "state"
    shutil.copytree(small.disk / "state", copy, ignore=shutil.ignore_patterns("emulator.json"))
    with life_in(copy / "moto") as again:
        assert "bucket" in [bucket["Name"] for bucket in again.s3.list_buckets()["Buckets"]]
        store = again.state.objects
        stored = store.latest("bucket", "before")
        assert b"".join(store.blobs.read(stored.segments, 0, stored.size)) == b"precious"


@pytest.mark.parametrize("kilobytes", [0, 100])
def test_start_on_a_full_disk_says_so(tmp_path, kilobytes):
    """And not to start afresh: what is there is whole."""
    fill = f"head -c {2048 - kilobytes}k /dev/zero > {tmp_path}/filler"
    mounts = f"mount -t tmpfs -o size=2m tmpfs {tmp_path} && {fill}"
    state = {"LOCAL_SAGEMAKER_STATE_DIR": f"{tmp_path}/state"}
    process = in_mounts(mounts, COMMAND, "start", "--port", "0", **state)
    done = subprocess.run(**process, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1, done.stdout
    assert re.search("No space left|disk .* is full", done.stderr), done.stderr
    assert "--forget" not in done.stderr and "Traceback" not in done.stderr
