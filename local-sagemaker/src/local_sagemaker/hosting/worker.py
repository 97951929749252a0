"""A worker process as the emulator sees it: start it, wait until it answers, ask it, end it."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import urllib3

from local_sagemaker.cluster.orphans import JOB_ENV, kill_orphans
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.core.environment import PACKAGES, base_environment
from local_sagemaker.hosting.model import SUBMIT_DIRECTORY, Container
from local_sagemaker.hosting.runtime.http import KEY

PING_SECONDS = 1.0
JOIN_SECONDS = 5.0
TAIL_LINES = 30
CONNECTIONS = 128


class StartError(Exception):
    """Why a worker does not answer."""


class TooSlow(Exception):
    """No answer within the limit."""


class Gone(Exception):
    """The worker ended before it answered."""


class NotTaken(Gone):
    """The worker had ended before it was asked."""


@dataclasses.dataclass
class Answer:
    """What a worker answered. status: HTTP's."""

    status: int
    content_type: str
    body: bytes


def environment(
    directory: Path, container: Container, mark: str, region: str, aws: LocalAws
) -> dict[str, str]:
    """The variables of a worker: this machine's, AWS's, and the model's own.

    directory: the worker's, which holds model/. aws: the emulator, for a script that asks S3.
    """
    asked = dict(container.environment)
    if asked.get(SUBMIT_DIRECTORY):
        asked[SUBMIT_DIRECTORY] = str(directory / "model" / "code")
    env = base_environment() | {
        "TMPDIR": str(directory / "tmp"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "AWS_REGION": region,
        **aws.variables(region),
        "SAGEMAKER_BASE_DIR": str(directory),
        "LOCAL_SAGEMAKER_IMAGE": container.image,
        JOB_ENV: mark,
    }
    python = os.pathsep.join(filter(None, [asked.pop("PYTHONPATH", ""), str(PACKAGES)]))
    path = os.pathsep.join(filter(None, [env["PATH"], asked.pop("PATH", "")]))
    return env | asked | {"PYTHONPATH": python, "PATH": path}


class Worker:
    """A running worker. It ends with the thread that made it: the kernel sees to that.

    directory: its own. env: see `environment`. say: gets its output, some lines at a time.
    """

    def __init__(
        self, directory: Path, env: Mapping[str, str], say: Callable[[list[str]], None]
    ) -> None:
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        self.mark, self.say = env[JOB_ENV], say
        self.key = secrets.token_urlsafe(30)
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        command = [sys.executable, "-m", "local_sagemaker.hosting.runtime"]
        with socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as listener:
            port = listener.getsockname()[1]
            self.process = subprocess.Popen(
                [*command, str(listener.fileno()), str(os.getpid())],
                stdin=subprocess.PIPE,  # never written: its end tells the worker of ours
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[listener.fileno()],
                env={**env, KEY: self.key},
                cwd=directory,
                start_new_session=True,
            )
        self.pool = urllib3.HTTPConnectionPool(
            "127.0.0.1", port, maxsize=CONNECTIONS, retries=False
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until the model is loaded. Raises StartError with the end of its output."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self._request("GET", "ping", timeout=PING_SECONDS).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if self.process.poll() is not None:
                self.reader.join(PING_SECONDS)
                raise StartError(f"its process ended with exit code {self.process.returncode}")
            if time.monotonic() > deadline:
                raise StartError(f"no answer to /ping within {seconds:g} s")
            time.sleep(0.02)

    def ask(self, body: bytes, headers: Mapping[str, str], seconds: float) -> Answer:
        """POST /invocations. Raises TooSlow, Gone or NotTaken."""
        try:
            reply = self._request(
                "POST", "invocations", body=body, headers=dict(headers), timeout=seconds
            )
        except urllib3.exceptions.NewConnectionError as error:  # in urllib3 1 a TimeoutError, too
            raise NotTaken(str(error)) from error
        except urllib3.exceptions.TimeoutError as error:
            raise TooSlow(f"no answer within {seconds:g} s") from error
        except urllib3.exceptions.HTTPError as error:
            raise Gone(str(error)) from error
        return Answer(reply.status, reply.headers.get("Content-Type", ""), reply.data)

    def _request(self, method: str, path: str, **more):
        return self.pool.request(method, f"/{self.key}/{path}", **more)

    def wait(self) -> int:
        """Wait for its end; the exit code."""
        return self.process.wait()

    def kill(self) -> None:
        """End it, and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End it and release everything that it held."""
        self.kill()
        self.process.wait()
        kill_orphans(self.mark)  # a script may have started processes in other groups
        self.process.stdin.close()
        self.pool.close()
        self.reader.join(JOIN_SECONDS)
        if not self.reader.is_alive():  # else a stray holds the pipe, and may write to it yet
            self.process.stdout.close()

    def last_words(self) -> str:
        """The end of its output."""
        return "\n".join(self.tail)

    def _read(self) -> None:
        rest = b""
        while data := os.read(self.process.stdout.fileno(), 65536):
            *lines, rest = (rest + data).split(b"\n")
            self._tell(lines)
        self._tell([rest] if rest else [])

    def _tell(self, raw: list[bytes]) -> None:
        lines = [line.rstrip(b"\r").decode("utf-8", "replace") for line in raw]
        self.tail.extend(lines)
        if lines:
            self.say(lines)
