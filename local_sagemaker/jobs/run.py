"""Runs one job: download, train, upload. One thread of the endpoint for each job."""

from __future__ import annotations

import logging
import sys
import threading
import time
import traceback
from pathlib import Path

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker.cluster.links import Links
from local_sagemaker.cluster.spec import ClusterSpec
from local_sagemaker.jobs import artifacts, channels, failure, instances, spot, vpc
from local_sagemaker.jobs.aws import LocalAws
from local_sagemaker.jobs.cluster_process import ClusterProcess
from local_sagemaker.jobs.metrics import Metrics
from local_sagemaker.jobs.record import JobRecord
from local_sagemaker.server.files import empty, remove

LOG = logging.getLogger(__name__)
TRAIN = [sys.executable, "-m", "local_sagemaker.image.train"]
CONTAINER = [sys.executable, "-m", "local_sagemaker.image.container"]
DAY = spot.DAY
CHECKPOINT_SECONDS = 1.0
WATCH_SECONDS = 0.2
AWS_ERRORS = (BotoCoreError, Boto3Error, ClientError)


class JobRun:
    """A job while it runs.

    directory: the job's own, which holds its instances until they are uploaded.
    isolation: `namespaces` or `processes`. grace_seconds: from SIGTERM to SIGKILL.
    links: between its instances; None for wide ones. reach: what its instances reach.
    """

    def __init__(
        self,
        record: JobRecord,
        aws: LocalAws,
        directory: Path,
        isolation: str,
        grace_seconds: float,
        links: Links | None = None,
        reach: vpc.Reach = vpc.EVERYTHING,
    ) -> None:
        self.record, self.aws, self.directory = record, aws, directory
        self.isolation, self.grace_seconds = isolation, grace_seconds
        self.links, self.reach = links, reach
        self.region = record.data["region"]
        self.cluster: ClusterProcess | None = None
        self.metrics = Metrics(record.request)
        self.started_at = int(time.time())
        self.created = time.monotonic()
        self.interruptions = spot.Interruptions(record.request, directory)
        self.stop_wanted = threading.Event()
        self.killed = False
        self.interrupted = False
        self.out_of_time: str | None = None  # the limit that is reached
        self.exits: list[tuple[str, int]] = []
        self.errors: list[str] = []
        self.thread = threading.Thread(target=self._run, name=record.name, daemon=True)

    def stop(self) -> None:
        """What StopTrainingJob does: SIGTERM, grace, SIGKILL, then upload what is there."""
        self.stop_wanted.set()
        if self.cluster:
            self.cluster.stop()

    def kill(self) -> None:
        """End at once and upload nothing, for an endpoint that is going down."""
        self.killed = True
        self.stop_wanted.set()
        if self.cluster:
            self.cluster.kill()

    def _run(self) -> None:
        try:
            self._phases()
        except channels.DataError as error:
            self.record.end("Failed", reason=f"ClientError: {error}")
        except (*AWS_ERRORS, OSError) as error:
            LOG.warning("%s: %s", self.record.name, error)
            self.record.end("Failed", reason=f"InternalServerError: {error}")
        except Exception as error:
            LOG.error("%s: %s", self.record.name, traceback.format_exc())
            reason = f"InternalServerError: {type(error).__name__}: {error}"
            self.record.end("Failed", reason=reason)
        finally:
            self._clean_up()

    def _phases(self) -> None:
        while True:
            where = (self.directory, self.isolation, self.aws.port)
            hosts = instances.prepare(self.record, *where, self.reach.internet)
            opt_ml = {host.name: host.path / "ml" for host in hosts}
            checkpoints = self._download(opt_ml)
            if not self.stop_wanted.is_set():
                self.record.enter("Training")
                self._train(hosts, checkpoints)
            if not self.interrupted or self.out_of_time or self.stop_wanted.is_set():
                break
            self._lose(hosts, checkpoints)
            if self.stop_wanted.wait(spot.BACK_SECONDS):
                self.record.end("Stopped")
                return
            self.record.enter("Starting")
        self._finish(opt_ml, checkpoints)

    def _download(self, opt_ml: dict[str, Path]) -> artifacts.CheckpointSync | None:
        for name in opt_ml:
            self.aws.open_log(self.region, self._stream(name))
        self.record.enter("Downloading")
        if not self.reach.s3 and {"InputDataConfig", "CheckpointConfig"} & {*self.record.request}:
            raise channels.DataError(f"Data download failed:{vpc.NO_S3}")
        channels.fetch(self.aws, self.record.request, self.region, opt_ml)
        if "CheckpointConfig" not in self.record.request:
            return None
        artifacts.fetch_checkpoints(self.aws, self.record.request, self.region, opt_ml)
        return artifacts.CheckpointSync(self.aws, self.record.request, self.region, opt_ml)

    def _lose(self, hosts: list, checkpoints: artifacts.CheckpointSync | None) -> None:
        """The spot instances are gone. Of what was on them, only checkpoints are in S3."""
        if checkpoints:
            checkpoints.sync(final=True)
        said = "[local] The spot instances were interrupted; the job starts again on others."
        self.aws.write_log(self.region, self._stream(hosts[0].name), _now_ms(), [said])
        self.record.enter("Interrupted")
        for host in hosts:
            remove(host.path)
        self.exits, self.errors, self.interrupted = [], [], False
        self.started_at = max(int(time.time()), self.started_at + 1)  # log streams of their own

    def _finish(self, opt_ml: dict[str, Path], checkpoints) -> None:
        if self.killed:  # whoever would take the upload is going away
            self.record.end("Stopped")
            return
        try:
            self._upload(opt_ml, checkpoints)
        except channels.DataError as error:
            if self._failed() is None:
                raise
            LOG.warning("%s: %s", self.record.name, error)  # the script's own failure tells more
        self._end(opt_ml)

    def _train(self, hosts: list, checkpoints: artifacts.CheckpointSync | None) -> None:
        spec = ClusterSpec(
            job=self.record.name,
            isolation=self.isolation,
            hosts=hosts,
            command=command(self.record.request),
            endpoint_port=self.aws.port,
            grace_seconds=self.grace_seconds,
            prefix=sys.prefix,
            links=self.links,
            proxy=self.reach.internet,
            closed=self.reach.closed,
            endpoint=self.reach.s3,
        )
        self.cluster = ClusterProcess(spec, self.directory)
        if self.stop_wanted.is_set():  # asked for while the supervisor was being started
            self.cluster.stop()
        over = threading.Event()
        helpers = [threading.Thread(target=self._watch, args=(over,), daemon=True)]
        if checkpoints:
            args = (over, checkpoints)
            helpers.append(threading.Thread(target=self._sync, args=args, daemon=True))
        for helper in helpers:
            helper.start()
        try:
            for event in self.cluster.events():
                self._on(event)
        finally:
            over.set()
            said = self.cluster.close()
            for helper in helpers:
                helper.join()
        if said:
            LOG.warning("%s: supervisor: %s", self.record.name, said)
            self.errors.append(said)

    def _on(self, event: dict) -> None:
        if event["event"] == "log":
            stream = self._stream(event["host"])
            self.aws.write_log(self.region, stream, event["time"], event["lines"])
            for line in event["lines"]:
                self.metrics.read(line)
            self.metrics.send(self.aws, self.region, self.record.name)
        elif event["event"] == "exit":
            self.exits.append((event["host"], event["code"]))
        elif event["event"] == "error":
            self.errors.append(event["message"])

    def _watch(self, over: threading.Event) -> None:
        """End the instances when a time limit is reached, or when they are taken away."""
        began = time.monotonic()  # not the clock's time: it may be set
        while not over.wait(WATCH_SECONDS):
            waited = time.monotonic() - self.created
            limit = spot.time_exceeded(self.record.request, self.record.seconds(), waited)
            if limit:
                self.out_of_time = limit
                if limit == "MaxWaitTimeExceeded":
                    self.record.stopping()
                self.cluster.stop()
                return
            if self.interruptions.due(time.monotonic() - began):
                self.interrupted = True
                self.cluster.stop()

    def _sync(self, over: threading.Event, checkpoints: artifacts.CheckpointSync) -> None:
        while not over.wait(CHECKPOINT_SECONDS):
            try:
                checkpoints.sync()
            except AWS_ERRORS as error:
                LOG.warning("%s: checkpoint: %s", self.record.name, error)

    def _upload(self, opt_ml: dict[str, Path], checkpoints) -> None:
        if self.record.status != "Stopping":
            self.record.enter("Uploading")
        if not self.reach.s3:
            raise channels.DataError(f"Artifact upload failed:{vpc.NO_S3}")
        try:
            if checkpoints:
                checkpoints.sync(final=True)
            uri = artifacts.upload(self.aws, self.record.request, self.region, opt_ml)
        except (*AWS_ERRORS, OSError) as error:
            raise channels.DataError(f"Artifact upload failed: {error}") from error
        self.record.data["artifacts"] = uri
        self.record.data["metrics"] = self.metrics.values

    def _end(self, opt_ml: dict[str, Path]) -> None:
        failed = self._failed()
        if self.out_of_time:
            self.record.end("Stopped", self.out_of_time)
        elif self.stop_wanted.is_set():
            self.record.end("Stopped")
        elif failed:
            self.record.end("Failed", reason=failure.reason(opt_ml[failed[0]], failed[1]))
        elif len(self.exits) < len(opt_ml):
            said = "; ".join(self.errors) or "the supervisor ended early"
            self.record.end("Failed", reason=f"InternalServerError: {said}")
        else:
            self.record.end("Completed")

    def _failed(self) -> tuple[str, int] | None:
        """The first instance that failed, and its exit code. The others were ended for it."""
        return next(((host, code) for host, code in self.exits if code != 0), None)

    def _stream(self, host: str) -> str:
        return f"{self.record.name}/{host}-{self.started_at}"

    def _clean_up(self) -> None:
        """The instances are gone; what a job leaves is in S3, in the logs and in job.json."""
        clean(self.directory)


def _now_ms() -> int:
    return int(time.time() * 1000)


def command(request: dict) -> list[str]:
    """What every instance runs: the request's own entrypoint, or else the toolkit's `train`."""
    algorithm = request["AlgorithmSpecification"]
    entrypoint = algorithm.get("ContainerEntrypoint")
    if not entrypoint:
        return TRAIN
    return [*CONTAINER, *entrypoint, *algorithm.get("ContainerArguments", [])]


def clean(directory: Path) -> None:
    """Remove everything of a job but its record."""
    empty(directory, but="job.json")
