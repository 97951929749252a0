"""A shell of one's own with a small disk, or with nowhere to write: mounts nobody else sees."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

REPOSITORY = Path(__file__).resolve().parents[2]
START_SECONDS = 120


@functools.cache
def can_mount() -> bool:
    """Whether this user may mount a tmpfs in namespaces of its own."""
    try:
        done = subprocess.run(
            [*UNSHARE, "mount -t tmpfs -o size=1m tmpfs /proc/self/fd"], capture_output=True
        )
        tried = subprocess.run([*UNSHARE, "mount -t tmpfs tmpfs /mnt"], capture_output=True)
    except OSError:
        return False
    return 0 in (done.returncode, tried.returncode)


UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]


def needs_mounts():
    """A mark for tests that need it."""
    return pytest.mark.skipif(not can_mount(), reason="no mounts in namespaces of one's own here")


def command(mounts: str, *program: str) -> list[str]:
    """The words that run `program` after the shell commands `mounts`."""
    return [*UNSHARE, f'{mounts} && exec "$@"', "sh", *program]


def run(mounts: str, *program: str, **variables: str) -> subprocess.CompletedProcess:
    """Run a program to its end there."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return subprocess.run(
        command(mounts, *program),
        capture_output=True,
        text=True,
        timeout=240,
        env={**kept, "PYTHONPATH": str(REPOSITORY), **variables},
    )


class EndpointThere:
    """An endpoint whose process runs after `mounts`. state: as it sees it."""

    def __init__(self, mounts: str, state: str, **variables: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.state = state
        program = [sys.executable, "-m", "local_sagemaker", "--state", state, "--grace", "1"]
        program += ["--port", str(self.port), "--isolation", "processes"]
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        self.process = subprocess.Popen(
            command(mounts, *program),
            env={**kept, "PYTHONPATH": str(REPOSITORY), **variables},
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
