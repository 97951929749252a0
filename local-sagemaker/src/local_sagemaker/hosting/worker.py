"""A worker process as the emulator sees it: start it, wait until it answers, ask it, end it."""

from __future__ import annotations

import collections
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import urllib3

from local_sagemaker.cluster.spec import HOST_ENV, JOB_ENV, PROCESSES, ClusterSpec, Host
from local_sagemaker.cluster.supervised_processes import SupervisorProcess
from local_sagemaker.core.aws import PACKAGES, LocalAws, base_environment
from local_sagemaker.core.records import Record
from local_sagemaker.hosting.model import SUBMIT_DIRECTORY, Container
from local_sagemaker.hosting.runtime.http import KEY
from local_sagemaker.moto_backend.logs import StreamLog

PING_SECONDS = 1.0
TAIL_LINES = 30
CONNECTIONS = 128
NAME = "worker"
RUNTIME = "local_sagemaker.hosting.runtime"


class StartError(Exception):
    """Why a worker does not answer."""


class TooSlow(Exception):
    """No answer within the limit."""


class Gone(Exception):
    """The worker ended before it answered."""


class NotTaken(Gone):
    """The worker had ended before it was asked."""


def environment(
    directory: Path, container: Container, mark: str, region: str, aws: LocalAws
) -> dict[str, str]:
    """The variables of a worker: this machine's, AWS's, and the model's own.

    directory: the worker's, which holds model/. aws: the emulator, for a script that asks S3.
    """
    requested = dict(container.environment)
    if requested.get(SUBMIT_DIRECTORY):
        requested[SUBMIT_DIRECTORY] = str(directory / "model" / "code")
    env = base_environment() | {
        "TMPDIR": str(directory / "tmp"),
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "AWS_REGION": region,
        **aws.variables(region),
        "SAGEMAKER_BASE_DIR": str(directory),
        "LOCAL_SAGEMAKER_IMAGE": container.image,
        JOB_ENV: mark,
        HOST_ENV: NAME,
    }
    python = os.pathsep.join(filter(None, [requested.pop("PYTHONPATH", ""), str(PACKAGES)]))
    path = os.pathsep.join(filter(None, [env["PATH"], requested.pop("PATH", "")]))
    return env | requested | {"PYTHONPATH": python, "PATH": path}


class Worker:
    """A running worker, under a supervisor: it and what it started end with the emulator.

    directory: its own. env: see `environment`. log: gets its output, some lines at a time, and
    `tail` has the last of it.
    """

    def __init__(
        self, directory: Path, env: dict[str, str], log: Callable[[list[str]], None]
    ) -> None:
        (directory / "tmp").mkdir(parents=True, exist_ok=True)
        self.log = log
        self.key = secrets.token_urlsafe(30)
        self.tail: collections.deque[str] = collections.deque(maxlen=TAIL_LINES)
        with socket.create_server(("127.0.0.1", 0), backlog=CONNECTIONS) as listener:
            port = listener.getsockname()[1]
            worker = Host(
                name=NAME,
                directory=str(directory),
                env={**env, KEY: self.key},
                command=[sys.executable, "-m", RUNTIME, str(listener.fileno())],
                folder=str(directory),
                descriptors=[listener.fileno()],
            )
            spec = ClusterSpec(env[JOB_ENV], PROCESSES, [worker], [])
            self.supervisor = SupervisorProcess(spec, self._on_event)
        self.pool = urllib3.HTTPConnectionPool(
            "127.0.0.1", port, maxsize=CONNECTIONS, retries=False
        )
        self.thread = threading.Thread(target=self.supervisor.run, daemon=True)
        self.thread.start()

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until the model is loaded. Raises StartError with the end of its output."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                if self._request("GET", "ping", timeout=PING_SECONDS).status == 200:
                    return
            except urllib3.exceptions.HTTPError:
                pass
            if not self.thread.is_alive():
                raise StartError(self._words(f"its process ended with exit code {self.wait()}"))
            if time.monotonic() > deadline:
                raise StartError(self._words(f"no answer to /ping within {seconds:g} s"))
            time.sleep(0.02)

    def _words(self, reason: str) -> str:
        """Why it did not start, and the end of its output."""
        return "\n".join([f"({reason})", *self.tail])

    def ask(
        self, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> urllib3.BaseHTTPResponse:
        """POST /invocations. Raises TooSlow, Gone or NotTaken."""
        try:
            return self._request(
                "POST", "invocations", body=body, headers=dict(headers), timeout=seconds
            )
        except urllib3.exceptions.NewConnectionError as error:  # in urllib3 1 a TimeoutError, too
            raise NotTaken(str(error)) from error
        except urllib3.exceptions.TimeoutError as error:
            raise TooSlow(f"no answer within {seconds:g} s") from error
        except urllib3.exceptions.HTTPError as error:
            raise Gone(str(error)) from error

    def _request(self, method: str, path: str, **options):
        return self.pool.request(method, f"/{self.key}/{path}", **options)

    def wait(self) -> int | None:
        """Wait for its end; the exit code, or None if its supervisor was killed."""
        self.thread.join()
        return self.supervisor.statuses.get(NAME)

    def kill(self) -> None:
        """End it, and what it started."""
        self.supervisor.kill()

    def close(self) -> None:
        """End it and release everything that it held."""
        self.kill()
        self.thread.join()
        self.pool.close()

    def _on_event(self, event: dict) -> None:
        if lines := event.get("lines"):
            self.tail.extend(lines)
            self.log(lines)


class WorkerRun:
    """A worker and the thread of the emulator that looks after it: an endpoint, a transform job.

    kind: "endpoint" or "transform". group: of CloudWatch, for the worker's output.
    """

    def __init__(self, record: Record, aws: LocalAws, kind: str, group: str) -> None:
        self.record, self.aws, self.region = record, aws, record.region
        self.directory = record.path.parent
        self.container = Container(**record.data["container"])
        self.mark = aws.mark(f"{kind}/{record.key}")  # what every process of it carries
        self.log = StreamLog(aws.state, self.region, group, record.data["stream"])
        self.lock = threading.Lock()
        self.worker: Worker | None = None
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, name=record.name, daemon=True)

    def run(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        """End the worker, and start no other."""
        with self.lock:
            self.stopping.set()
            if self.worker:
                self.worker.kill()

    def start_worker(self, seconds: float, variables: Mapping[str, str] | None = None) -> bool:
        """Start a worker, and wait until it answers; False if it is to stop.

        Raises StartError where it does not answer within `seconds`.
        """
        env = environment(self.directory, self.container, self.mark, self.region, self.aws)
        with self.lock:
            if self.stopping.is_set():
                return False
            self.worker = Worker(self.directory, {**env, **(variables or {})}, self.log.write)
        self.worker.wait_until_ready(seconds)
        return True
