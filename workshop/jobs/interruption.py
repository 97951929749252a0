"""Take a spot job's instances away, as AWS may: at a step of the training, so at no random time."""

from __future__ import annotations

import time

import local_sagemaker
from workshop.jobs.logs import LogReader
from workshop.jobs.session import Session

POLL_SECONDS = 0.1


def interrupt_at_step(job: str, step: int, session: Session) -> None:
    """Wait until a job's log names a step, then interrupt the job on the emulator.

    Returns when that is asked for, or when the job has ended before. On AWS it returns at once:
    nobody can order an interruption there.

    Args:
        job: the name of a spot job that is running.
        step: counted from 1; the log holds records {"event": "step", "step": ...}.
        session: what workshop.session returned.
    """
    if session.target == "aws":
        return
    log, sagemaker = LogReader(session.client("logs"), job), session.client("sagemaker")
    while True:
        events = [line.event for line in log.new_lines() if line.event]
        if any(event.get("step", 0) >= step for event in events):
            local_sagemaker.interrupt(local_sagemaker.state_directory(), job)
            return
        status = sagemaker.describe_training_job(TrainingJobName=job)["TrainingJobStatus"]
        if status != "InProgress":
            return
        time.sleep(POLL_SECONDS)
