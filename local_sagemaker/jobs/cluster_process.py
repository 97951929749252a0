"""The endpoint's side of a supervisor: start it, read its events, end it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from local_sagemaker.cluster.spec import ClusterSpec


class ClusterProcess:
    """A running supervisor. When this process dies, its pipe closes and the job dies too."""

    def __init__(self, spec: ClusterSpec, directory: Path) -> None:
        path = directory / "cluster.json"
        spec.write(path)
        self.errors = (directory / "supervisor.log").open("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "local_sagemaker.cluster.supervisor", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            start_new_session=True,  # Ctrl-C is for the endpoint, which ends its jobs itself
        )
        self.lock = threading.Lock()

    def events(self) -> Iterator[dict]:
        """The supervisor's events until it ends."""
        for line in self.process.stdout:
            if line.endswith(b"\n"):  # else cut off: the supervisor was killed
                yield json.loads(line)
        self.process.wait()

    def stop(self) -> None:
        """SIGTERM to every process of the job; SIGKILL after its grace period."""
        self._write(b"stop\n")

    def kill(self) -> None:
        """End the job at once."""
        with self.lock:
            if not self.process.stdin.closed:
                self.process.stdin.close()

    def close(self) -> str:
        """Release everything; return what the supervisor wrote to its standard error."""
        self.kill()
        self.process.wait()
        self.process.stdout.close()
        self.errors.seek(0)
        text = self.errors.read()
        self.errors.close()
        return text.strip()

    def _write(self, data: bytes) -> None:
        with self.lock:
            try:
                self.process.stdin.write(data)
                self.process.stdin.flush()
            except (BrokenPipeError, ValueError):  # it has ended already
                return
