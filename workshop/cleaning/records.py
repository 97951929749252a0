"""What SageMaker remembers of jobs that have ended."""

from __future__ import annotations

from botocore.exceptions import ClientError

from workshop.cleaning.jobs import Jobs, has_ended
from workshop.cleaning.things import Finding, NotDeleted, Thing, wait_until_gone
from workshop.jobs.logs import LOG_GROUP


class JobRecords:
    """Records of jobs. They cost nothing, and prove whose a log is: so they go after the logs."""

    kind = "records of training jobs"

    def __init__(self, session) -> None:
        self.session = session
        self.client = session.client("sagemaker")

    def find(self) -> Finding:
        return Jobs(self.session).sorted(self.kind, has_ended)

    def delete(self, thing: Thing) -> None:
        if self._has_log(thing.name):
            raise NotDeleted("its log is still there, and only this record tells whose it is")
        if self._status(thing.name) not in (None, "Deleting"):
            self.client.delete_training_job(TrainingJobName=thing.name)
        wait_until_gone(self.session, lambda: self._status(thing.name))

    def _has_log(self, job: str) -> bool:
        logs = self.session.client("logs")
        try:
            found = logs.describe_log_streams(
                logGroupName=LOG_GROUP, logStreamNamePrefix=f"{job}/", limit=1
            )
        except logs.exceptions.ResourceNotFoundException:
            return False
        return bool(found["logStreams"])

    def _status(self, job: str) -> str | None:
        """None if there is no such job: SageMaker then speaks of a request that is not valid."""
        try:
            return self.client.describe_training_job(TrainingJobName=job)["TrainingJobStatus"]
        except ClientError as error:
            told = error.response["Error"]
            if told.get("Code") == "ResourceNotFound" or "not found" in told.get("Message", ""):
                return None
            raise
