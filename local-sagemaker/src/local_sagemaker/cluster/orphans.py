"""The processes that a job or a model's worker started, found by a variable that they all carry."""

from __future__ import annotations

import psutil

JOB_ENV = "LOCAL_SAGEMAKER_JOB"


def members(mark: str, host: str | None = None) -> list[psutil.Process]:
    """The living processes that a job started, found by its mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
        except (psutil.Error, OSError):
            continue
        if env.get(JOB_ENV) == mark and host in (None, env.get("LOCAL_SAGEMAKER_HOST")):
            found.append(process)
    return found


def kill_orphans(mark: str) -> int:
    """Kill what is left of a job; the number of processes killed."""
    orphans = members(mark)
    for process in orphans:
        try:
            process.kill()
        except psutil.Error:
            continue
    psutil.wait_procs(orphans, timeout=5)
    return len(orphans)
