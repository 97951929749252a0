"""The record of a training job: its statuses, with AWS's messages, and its time with instances."""

from __future__ import annotations

import time
from pathlib import Path

from local_sagemaker.core.failure import REASON_LIMIT
from local_sagemaker.core.json_record import JsonRecord

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


class JobRecord(JsonRecord):
    """The state of one training job."""

    needed = (*JsonRecord.needed[1:], "transitions")

    def __init__(self, path: Path, data: dict) -> None:
        super().__init__(path, data)
        self.since: float | None = None  # time.monotonic() when it got its instances
        self.held = 0.0  # seconds with instances that were taken away

    @classmethod
    def create(cls, directory: Path, request: dict, arn: str, region: str) -> JobRecord:
        """A new record for a CreateTrainingJob request. Its first status is Starting."""
        directory.mkdir(parents=True, exist_ok=True)  # a create that failed may have left it
        data = {"request": request, "arn": arn, "region": region, "created": time.time()}
        data |= {"status": "InProgress", "transitions": [], "metrics": {}}
        data["tags"] = request.get("Tags", [])
        record = cls(directory / "job.json", data)
        record.enter("Starting")
        return record

    @property
    def name(self) -> str:
        return self.data["request"]["TrainingJobName"]

    @property
    def request(self) -> dict:
        return self.data["request"]

    @property
    def ended(self) -> bool:
        return self.status in FINAL

    def enter(self, secondary: str, message: str | None = None, ended: bool = False) -> None:
        """Begin a secondary status, and end the one before. ended: it ends at once, too."""
        with self.lock:
            now, transitions = self.now(), self.data["transitions"]
            self._count(secondary, now)
            if self.status == "Stopping" and secondary in WORKING:
                return  # a job that was told to stop meanwhile
            if transitions:
                transitions[-1]["EndTime"] = now
            message = message or MESSAGES[secondary]
            transitions.append({"Status": secondary, "StartTime": now, "StatusMessage": message})
            if ended:
                transitions[-1]["EndTime"] = self.data["ended"] = now
                if self.held or self.since is not None:  # else another process began the job
                    self.data["seconds"] = self.seconds()
            self.save()

    def _count(self, secondary: str, now: float) -> None:
        if secondary == "Downloading":
            self.data.setdefault("started", now)
            self.since = time.monotonic()
        elif secondary == "Interrupted":
            self.held, self.since = self.seconds(), None

    def seconds(self) -> float:
        """Seconds with instances. Not from the record's times: the clock may have been set."""
        return self.held + (0.0 if self.since is None else time.monotonic() - self.since)

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
                self.data["reason"] = reason[:REASON_LIMIT]
            # The status first: it is then known even if the disk is full.
            self.data["status"] = status
            self.enter(secondary or status, ended=True)
