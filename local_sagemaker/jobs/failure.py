"""FailureReason, in AWS's words."""

from __future__ import annotations

from pathlib import Path

SIGKILL_CODE = 137
REASON_LIMIT = 1024  # characters; AWS's limit


def reason(opt_ml: Path, code: int) -> str:
    """Why an instance failed. opt_ml: its /opt/ml. code: its exit code.

    The toolkit writes what it knows into /opt/ml/output/failure; without that file only
    the exit code is known.
    """
    path = opt_ml / "output" / "failure"
    text = path.read_text(errors="replace").strip() if path.is_file() else ""
    if not text and code == SIGKILL_CODE:
        text = "The instance was killed (SIGKILL): it may have run out of memory"
    elif not text:
        text = "Please see job logs for more information"
    tail = f", exit code: {code}"
    return "AlgorithmError: " + shorten(text, REASON_LIMIT - len(tail) - 16) + tail


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters. AWS keeps the start; a traceback's last line tells more."""
    if len(text) <= limit:
        return text
    end = limit // 2
    return text[: limit - end - 5] + "\n...\n" + text[-end:]
