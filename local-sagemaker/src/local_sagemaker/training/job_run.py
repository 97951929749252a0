"""Runs one job: download, train, upload. One thread of the emulator for each job."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from local_sagemaker.cluster.spec import ClusterSpec, Connectivity
from local_sagemaker.cluster.supervised_processes import SupervisorProcess
from local_sagemaker.core import records
from local_sagemaker.core.aws import AWS_ERRORS, LocalAws
from local_sagemaker.core.s3_input import DataError
from local_sagemaker.storage.files import open_up, remove
from local_sagemaker.training import artifacts, channels, connectivity, instances, spot
from local_sagemaker.training.failure_reason import failure_reason
from local_sagemaker.training.job_log import JobLog
from local_sagemaker.training.job_record import JobRecord
from local_sagemaker.training.shared_folder import shared_folder

LOG = logging.getLogger(__name__)
TRAIN = [sys.executable, "-m", "local_sagemaker.container.entrypoint"]
CHECKPOINT_SECONDS = 1.0
WATCH_SECONDS = 0.2
INTERRUPTED = "The spot instances were interrupted; the job starts again on others."


class JobRun:
    """A job while it runs. Its instances live in its record's folder.

    isolation: `namespaces` or `processes`. grace_seconds: from SIGTERM to SIGKILL.
    """

    def __init__(
        self,
        record: JobRecord,
        aws: LocalAws,
        isolation: str,
        grace_seconds: float,
        connectivity: Connectivity,
    ) -> None:
        self.record, self.aws, self.directory = record, aws, record.path.parent
        self.request, self.region = record.request, record.region
        self.isolation, self.grace_seconds = isolation, grace_seconds
        self.connectivity, self.folder = connectivity, shared_folder(record.request)
        self.log = JobLog(aws, record)
        self.supervisor: SupervisorProcess | None = None
        self.created = time.monotonic()
        self.stop_wanted = threading.Event()
        self.abandoned = threading.Event()  # what is being copied to S3 is given up
        self.uploading = False
        self.killed = False
        self.interrupted = False
        self.out_of_time: str | None = None  # the limit that is reached
        self.thread = threading.Thread(target=self._run, name=record.name, daemon=True)

    def stop(self) -> None:
        """What StopTrainingJob does: SIGTERM, grace, SIGKILL, then upload what is there.

        A job that is uploading already stops doing that.
        """
        self.stop_wanted.set()
        if self.uploading:
            self.abandoned.set()
        if supervisor := self.supervisor:
            supervisor.stop()

    def kill(self) -> None:
        """End at once and upload nothing, for an emulator that is going down."""
        self.killed = True
        self.stop_wanted.set()
        self.abandoned.set()
        if supervisor := self.supervisor:
            supervisor.kill()

    def _run(self) -> None:
        try:
            self._phases()
        except Exception as error:
            if self.abandoned.is_set():
                self.record.end("Stopped")
            elif isinstance(error, DataError):
                self.record.end("Failed", reason=f"ClientError: {error}")
            else:
                self.record.end("Failed", reason=records.internal(self.record.name, error))
        finally:
            self.record.remove_all_else()

    def _phases(self) -> None:
        while True:
            where = (self.directory, self.isolation, self.aws, self.connectivity)
            hosts = instances.prepare(self.record, *where)
            opt_ml = {host.name: host.path / "ml" for host in hosts}
            self.left = artifacts.LeftBehind(opt_ml, self.abandoned)
            syncs = self._download(opt_ml)
            if not self.stop_wanted.is_set():
                self.record.enter("Training")
                self._train(hosts, syncs)
            if not self.interrupted or self.out_of_time or self.stop_wanted.is_set():
                break
            self._lose(hosts, syncs)
            if self.stop_wanted.wait(spot.BACK_SECONDS):
                self.record.end("Stopped")
                return
            self.record.enter("Starting")
        self._finish(opt_ml, syncs)

    def _download(self, opt_ml: dict[str, Path]) -> list[artifacts.Sync]:
        self.log.open(list(opt_ml))
        self.record.enter("Downloading")
        request = self.request
        if not self.connectivity.s3 and {"InputDataConfig", "CheckpointConfig"} & {*request}:
            raise DataError(f"Data download failed:{connectivity.NO_S3}")
        channels.fetch(self.aws, request, self.region, opt_ml)
        if "CheckpointConfig" in request:
            artifacts.fetch_checkpoints(self.aws, request, self.region, opt_ml)
        return artifacts.syncs(self.aws, request, self.region, self.left)

    def _train(self, hosts: list, syncs: list[artifacts.Sync]) -> None:
        algorithm = self.request["AlgorithmSpecification"]
        entrypoint = algorithm.get("ContainerEntrypoint", [])
        spec = ClusterSpec(
            job=self.record.name,
            isolation=self.isolation,
            hosts=hosts,
            command=[*TRAIN, *entrypoint, *algorithm.get("ContainerArguments", [])],
            port=self.aws.port,
            grace_seconds=self.grace_seconds,
            connectivity=self.connectivity,
            folder=self.folder,
        )
        self.supervisor = supervisor = SupervisorProcess(spec, self._on_event)
        if self.stop_wanted.is_set():  # asked for while the supervisor was being started
            supervisor.stop()
        repeated = [(WATCH_SECONDS, partial(self._watch, supervisor))]
        repeated += [(CHECKPOINT_SECONDS, partial(self._sync, sync)) for sync in syncs]
        ended = threading.Event()
        helpers = [
            threading.Thread(target=_repeat, args=(ended, seconds, call), daemon=True)
            for seconds, call in repeated
        ]
        for helper in helpers:
            helper.start()
        try:
            supervisor.run()
        finally:
            ended.set()
            for helper in helpers:
                helper.join()

    def _on_event(self, event: dict) -> None:
        if event["event"] == "log":
            self.log.write(event["host"], event["time"], event["lines"])

    def _watch(self, supervisor: SupervisorProcess) -> None:
        """End the instances when a time limit is reached, or when they are taken away."""
        if self.out_of_time:
            return
        waited = time.monotonic() - self.created
        limit = spot.time_exceeded(self.request, self.record.seconds(), waited)
        if limit:
            self.out_of_time = limit
            if limit == "MaxWaitTimeExceeded":
                self.record.stopping()
            supervisor.stop()
        elif spot.taken_away(self.directory):
            self.interrupted = True
            supervisor.stop()

    def _sync(self, sync: artifacts.Sync) -> None:
        try:
            sync.sync()
        except (*AWS_ERRORS, artifacts.Abandoned) as error:
            LOG.warning("%s: %s: %s", self.record.name, sync.prefix, error)

    def _lose(self, hosts: list, syncs: list[artifacts.Sync]) -> None:
        """The spot instances are gone. Of what was on them, only checkpoints are in S3."""
        self._open_up()
        for sync in syncs:
            sync.sync(final=True)
        self.log.log(hosts[0].name, INTERRUPTED)
        self.record.enter("Interrupted")
        for host in hosts:
            remove(host.path)
        self.supervisor, self.interrupted = None, False

    def _finish(self, opt_ml: dict[str, Path], syncs: list[artifacts.Sync]) -> None:
        if self.killed:  # the emulator, which would take the upload, is shutting down
            self.record.end("Stopped")
            return
        try:
            self._upload(opt_ml, syncs)
        except DataError as error:
            if not (self.supervisor and self.supervisor.failed):
                raise
            LOG.warning("%s: %s", self.record.name, error)  # the script's own failure tells more
        self._end(opt_ml)

    def _upload(self, opt_ml: dict[str, Path], syncs: list[artifacts.Sync]) -> None:
        if self.record.status != "Stopping":
            self.record.enter("Uploading")
        if not self.connectivity.s3:
            raise DataError(f"Artifact upload failed:{connectivity.NO_S3}")
        self.record.data["metrics"] = self.log.metrics.values
        self.uploading = not self.stop_wanted.is_set()
        self._open_up()
        try:
            for sync in syncs:
                sync.sync(final=True)
            uri = artifacts.upload(self.aws, self.request, self.region, self.left)
            if warning := self.left.message():
                self.log.log(next(iter(opt_ml)), warning)
        except (*AWS_ERRORS, OSError) as error:
            raise DataError(f"Artifact upload failed: {error}") from error
        self.record.data["artifacts"] = uri

    def _open_up(self) -> None:
        """The instances have ended: what a script closed to others can be read now."""
        for root in self.left.roots:
            open_up(root)
        self.left.left_out.clear()

    def _end(self, opt_ml: dict[str, Path]) -> None:
        if self.out_of_time:
            self.record.end("Stopped", self.out_of_time)
        elif self.stop_wanted.is_set() or self.supervisor is None:
            self.record.end("Stopped")
        elif host := self.supervisor.failed:
            status = self.supervisor.statuses[host]
            code = status if status >= 0 else 128 - status
            self.record.end("Failed", reason=failure_reason(opt_ml[host], code))
        elif len(self.supervisor.statuses) < len(opt_ml):
            message = "; ".join(self.supervisor.errors) or "the supervisor ended early"
            self.record.end("Failed", reason=f"InternalServerError: {message}")
        else:
            self.record.end("Completed")


def _repeat(ended: threading.Event, seconds: float, call: Callable[[], None]) -> None:
    while not ended.wait(seconds):
        call()
