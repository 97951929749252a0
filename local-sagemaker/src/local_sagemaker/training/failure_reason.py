"""FailureReason, in AWS's words."""

from __future__ import annotations

import contextlib
import os
import re
import tomllib
from pathlib import Path

from local_sagemaker.core.records import REASON_LIMIT, shorten
from local_sagemaker.storage.files import open_below

SIGKILL_CODE = 137
READ_LIMIT = 4096  # bytes of either end of the file
HINTS = tomllib.loads(Path(__file__).with_name("hints.toml").read_text())["hint"]


def failure_reason(opt_ml: Path, code: int) -> str:
    """Why an instance failed. opt_ml: its /opt/ml. code: its exit code.

    The toolkit writes what it knows into /opt/ml/output/failure; without that file only
    the exit code is known.
    """
    text = ""
    with contextlib.suppress(OSError):  # there is none, or it is a link that leads elsewhere
        with open(open_below(opt_ml, opt_ml / "output" / "failure"), "rb") as stream:
            raw = stream.read(READ_LIMIT)
            if (rest := os.fstat(stream.fileno()).st_size - READ_LIMIT) > 0:
                stream.seek(rest)  # a script may have written gigabytes
                raw += b"\n...\n" + stream.read(READ_LIMIT)
        text = raw.decode("utf-8", "replace").strip()
    if not text and code == SIGKILL_CODE:
        text = "The instance was killed (SIGKILL): it may have run out of memory"
    elif not text:
        text = "Please see job logs for more information"
    tail, hint = f", exit code: {code}", ""
    for row in HINTS:
        if match := re.search(row["pattern"], text):
            hint = f"[local] {row['advice'].format(*match.groups())}.\n"
            break
    return f"AlgorithmError: {hint}{shorten(text, REASON_LIMIT - len(tail) - len(hint) - 16)}{tail}"
