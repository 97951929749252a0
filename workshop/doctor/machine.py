"""Disk, memory, cores and ports."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from local_sagemaker.daemon import is_free
from workshop.doctor.result import Check, fail, ok, warn

GB = 1e9
DISK_LOW, DISK_NEEDED = 3 * GB, 0.5 * GB
# A training process with TensorFlow takes about 0.6 GB; two instances run up to four.
MEMORY_LOW, MEMORY_NEEDED = 4 * GB, 1.5 * GB


def disk() -> Check:
    """Free space, the smallest of: here, the home directory, the directory for temporary files."""
    try:
        places = {Path.cwd(), Path.home(), Path(tempfile.gettempdir())}
    except FileNotFoundError:
        return fail(
            "no folder for temporary files can be written",
            "name one in the variable TMPDIR: export TMPDIR=$HOME/tmp",
        )
    free, place = min((shutil.disk_usage(p).free, str(p)) for p in places if p.exists())
    found = f"{free / GB:.1f} GB free in {place}"
    if free < DISK_NEEDED:
        return fail(found, "free at least 3 GB")
    return warn(found, "3 GB or more is comfortable") if free < DISK_LOW else ok(found)


def memory() -> Check:
    available = psutil.virtual_memory().available
    found = f"{available / GB:.1f} GB available"
    if available < MEMORY_NEEDED:
        return fail(found, "close programs: a two-instance job needs 1.5 GB, four ranks 4 GB")
    if available < MEMORY_LOW:
        return warn(found, "enough for two processes; close programs before you run four")
    return ok(found)


def cores() -> Check:
    """Cores that this process may use, which a container can set below the machine's."""
    known = hasattr(os, "sched_getaffinity")
    count = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    if count < 2:
        return warn("1 core", "all runs, but no speed-up can be seen: two ranks share it")
    return ok(f"{count} cores")


def endpoint_port(port: int) -> Check:
    """Free, or the local endpoint answers there."""
    if is_free(port):
        return ok("free for the local endpoint")
    if is_endpoint(port):
        return ok("the local endpoint is up")
    return warn("another program uses it", "workshop up --port N with another N, or stop it")


def lab_port() -> Check:
    if is_free(8888):
        return ok("free for JupyterLab")
    return ok("in use; JupyterLab will take the next free one")


def is_endpoint(port: int) -> bool:
    """True where something answers SageMaker's ListTrainingJobs as SageMaker does."""
    headers = {
        "X-Amz-Target": "SageMaker.ListTrainingJobs",
        "Content-Type": "application/x-amz-json-1.1",
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("POST", "/", body="{}", headers=headers)
        return "TrainingJobSummaries" in json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return False
    finally:
        connection.close()
