"""A log stream in CloudWatch, written without a request: CloudWatch is in this process."""

from __future__ import annotations

import logging
import time

from local_sagemaker.core.aws import LocalAws
from local_sagemaker.moto_backend import logs

LOG = logging.getLogger(__name__)


class StreamLog:
    """A stream of a group; both are made with the first line, as on AWS."""

    def __init__(self, aws: LocalAws, region: str, group: str, stream: str) -> None:
        self.aws, self.where = aws, (region, group, stream)
        self.opened = False

    def open(self) -> None:
        if self.aws.state and not self.opened:
            self.aws.state.open_log_stream(*self.where)
        self.opened = True

    def write(self, lines: list[str], time_ms: int | None = None) -> None:
        """Add lines. What cannot be stored is noted in the emulator's own log.

        time_ms: Unix milliseconds; by default now.
        """
        try:
            self.open()
            if self.aws.state:
                logs.write(*self.where, time_ms or int(time.time() * 1000), lines)
        except OSError as error:
            LOG.warning("%s: %s", "/".join(self.where), error)

    def log(self, message: str) -> None:
        """Add a line of the emulator's own."""
        self.write([f"[local] {message}"])
