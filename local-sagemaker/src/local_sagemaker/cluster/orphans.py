"""The processes that a job or a model's worker started, found by variables that they all carry."""

from __future__ import annotations

import contextlib

import psutil

from local_sagemaker.cluster.spec import HOST_ENV, JOB_ENV


def members(job: str, host: str | None = None) -> list[psutil.Process]:
    """The living processes that a job started. host: only those of this instance."""
    processes = []
    for process in psutil.process_iter():
        try:
            env = process.environ()
        except (psutil.Error, OSError):
            continue
        if env.get(JOB_ENV) == job and host in (None, env.get(HOST_ENV)):
            processes.append(process)
    return processes


def kill_orphans(job: str) -> int:
    """Kill what is left of a job; the number of processes killed."""
    return kill(members(job))


def kill(processes: list[psutil.Process]) -> int:
    """Kill processes and wait until they have ended; how many there were."""
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()
    psutil.wait_procs(processes, timeout=5)
    return len(processes)
