"""The record of a training job: its statuses, with AWS's messages, and its time with instances."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from local_sagemaker.core.records import REASON_LIMIT, Record, shorten

# What AWS says at each step (SecondaryStatusTransitions[].StatusMessage).
MESSAGES = {
    "Starting": "Preparing the instances for training",
    "Downloading": "Downloading input data",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "The spot instances were interrupted",
    "Uploading": "Uploading generated training model",
    "Stopping": "Stopping the training job",
    "Completed": "Training job completed",
    "Failed": "Training job failed",
    "Stopped": "Training job stopped",
    "MaxRuntimeExceeded": "Training job runtime exceeded MaxRuntimeInSeconds provided",
    "MaxWaitTimeExceeded": "Training job wait time exceeded MaxWaitTimeInSeconds provided",
}
WORKING = ("Starting", "Downloading", "Training", "Interrupted", "Uploading")
FINAL = ("Completed", "Failed", "Stopped")


class JobRecord(Record):
    """The state of one training job. Its first secondary status is Starting."""

    needed = (*Record.needed, "transitions")

    def __init__(self, path: Path, data: dict) -> None:
        super().__init__(path, data)
        self.since: float | None = None  # time.monotonic() when it got its instances
        self.earlier = 0.0  # seconds with instances that were taken away

    @classmethod
    def create(cls, folder: Path, request: dict, status: str = "InProgress", **fields: Any) -> Self:
        """fields: arn, region."""
        fields |= {"name": request["TrainingJobName"], "transitions": [], "metrics": {}}
        record = super().create(folder, request, status, **fields)
        record.enter("Starting")
        return record

    @property
    def ended(self) -> bool:
        return self.status in FINAL

    def enter(self, secondary: str, ended: bool = False) -> None:
        """Begin a secondary status, and end the one before. ended: it ends at once, too."""
        with self.lock:
            now, transitions = self.now(), self.data["transitions"]
            if secondary == "Downloading":
                self.data.setdefault("started", now)
                self.since = time.monotonic()
            elif secondary == "Interrupted":
                self.earlier, self.since = self.seconds(), None
            if self.status == "Stopping" and secondary in WORKING:
                return  # a job that was told to stop meanwhile
            if transitions:
                transitions[-1]["EndTime"] = now
            message = MESSAGES[secondary]
            transitions.append({"Status": secondary, "StartTime": now, "StatusMessage": message})
            if ended:
                transitions[-1]["EndTime"] = self.data["ended"] = now
                if self.earlier or self.since is not None:  # else another process began the job
                    self.data["seconds"] = self.seconds()
            self.save()

    def seconds(self) -> float:
        """Seconds with instances. Not from the record's times: the clock may have been set."""
        return self.earlier + (0.0 if self.since is None else time.monotonic() - self.since)

    def stopping(self) -> bool:
        """Note a request to stop; False if the job has ended or is stopping already."""
        with self.lock:
            if self.status != "InProgress":
                return False
            self.data["status"] = "Stopping"
            self.enter("Stopping")
            return True

    def end(self, status: str, secondary: str | None = None, reason: str | None = None) -> None:
        """Finish: status is Completed, Failed or Stopped."""
        with self.lock:
            if self.ended:
                return
            if reason:
                self.data["reason"] = shorten(reason, REASON_LIMIT)
            # The status first: it is then known even if the disk is full.
            self.data["status"] = status
            self.enter(secondary or status, ended=True)
