"""A log stream in CloudWatch."""

from __future__ import annotations

import logging
import time

from local_sagemaker.core.aws import AWS_ERRORS, LocalAws

LOG = logging.getLogger(__name__)


class StreamLog:
    """A stream of a group; both are made with the first line, as on AWS."""

    def __init__(self, aws: LocalAws, region: str, group: str, stream: str) -> None:
        self.aws, self.region, self.group, self.stream = aws, region, group, stream
        self.opened = False

    def write(self, lines: list[str]) -> None:
        """Add lines. What CloudWatch refuses is noted in the emulator's own log."""
        try:
            if not self.opened:
                self.aws.open_log(self.region, self.stream, self.group)
                self.opened = True
            self.aws.write_log(self.region, self.stream, now_ms(), lines, self.group)
        except AWS_ERRORS as error:
            LOG.warning("%s/%s: %s", self.group, self.stream, error)

    def log(self, message: str) -> None:
        """Add a line of the emulator's own."""
        self.write([f"[local] {message}"])


def now_ms() -> int:
    return int(time.time() * 1000)
