"""What every FailureReason has in common: its limit, and errors of the emulator itself."""

from __future__ import annotations

import logging
import traceback

from local_sagemaker.core.aws import AWS_ERRORS

LOG = logging.getLogger(__name__)
REASON_LIMIT = 1024  # characters; AWS's limit


def internal(name: str, error: Exception) -> str:
    """The reason where not the script failed, but what runs it. name: whose reason it is.

    It is logged, and an unexpected error with the place where it was raised.
    """
    if isinstance(error, (*AWS_ERRORS, OSError)):
        LOG.warning("%s: %s", name, error)
        return f"InternalServerError: {error}"
    LOG.error("%s: %s", name, "".join(traceback.format_exception(error)))
    return f"InternalServerError: {type(error).__name__}: {error}"


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters. AWS keeps the start; a traceback's last line tells more."""
    if len(text) <= limit:
        return text
    end = limit // 2
    return text[: limit - end - 5] + "\n...\n" + text[-end:]
