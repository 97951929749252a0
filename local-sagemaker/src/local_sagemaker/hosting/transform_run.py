"""Runs one transform job: start a worker, send it every record, put its answers into S3."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from local_sagemaker.core import records
from local_sagemaker.core.aws import AWS_ERRORS, LocalAws, split_uri
from local_sagemaker.core.records import Record
from local_sagemaker.core.s3_input import DataError, objects_below
from local_sagemaker.hosting import model, worker
from local_sagemaker.hosting.endpoint_run import START_SECONDS

GROUP = "/aws/sagemaker/TransformJobs"
DEFAULT_MB = 6  # CreateTransformJob in botocore's model of SageMaker, read 2026-11-21
MEGABYTE = 1024 * 1024
DEFAULT_SECONDS = 600  # of one answer: ModelClientConfig in the same model


class TransformRun(worker.WorkerRun):
    """A transform job while it runs. Its directory is emptied at the end.

    `kill` breaks off what runs; objects that are done keep their output.
    """

    def __init__(self, record: Record, aws: LocalAws) -> None:
        super().__init__(record, aws, "transform", GROUP)
        self.request = record.request
        self.input, self.output = self.request["TransformInput"], self.request["TransformOutput"]
        self.several = self.request.get("BatchStrategy", "MultiRecord") == "MultiRecord"
        self.megabytes = self.request.get("MaxPayloadInMB", DEFAULT_MB)

    def run(self) -> None:
        reason = None
        try:
            self._phases()
        except worker.StartError as error:
            reason = f"AlgorithmError: the model did not pass the ping health check {error}"
        except DataError as error:
            reason = str(error)
        except Exception as error:
            reason = records.internal(self.record.name, error)
        finally:
            if self.worker:
                self.worker.close()
            self.record.remove_all_else()
        status = "Stopped" if self.stopping.is_set() else "Failed" if reason else "Completed"
        reason = reason if status == "Failed" else None
        self.record.set_status(status, reason, ended=time.time())

    def _phases(self) -> None:
        model.fetch(self.aws, self.container, self.region, self.directory / "model")
        uri = self.input["DataSource"]["S3DataSource"]["S3Uri"]
        objects = objects_below(self.aws, uri, self.region)
        if not objects:
            raise DataError(f"ClientError: No S3 objects found under {uri}.")
        if not self.start_worker(START_SECONDS, self._batch_variables()):
            return
        with self.record.lock:  # it may be Stopping by now
            self.record.set_status(self.record.status, started=time.time())
        failed = [error for entry in objects if (error := self._object(*entry))]
        if failed and not self.stopping.is_set():
            rest = f" ({len(failed)} objects failed; this is the first.)" if failed[1:] else ""
            raise DataError(failed[0] + rest)

    def _batch_variables(self) -> dict[str, str]:
        # As the sagemaker SDK's own local mode sets them: sagemaker/local/entities.py of 2.257.7.
        return {
            "SAGEMAKER_BATCH": "True",
            "SAGEMAKER_MAX_PAYLOAD_IN_MB": str(self.megabytes),
            "SAGEMAKER_BATCH_STRATEGY": "MULTI_RECORD" if self.several else "SINGLE_RECORD",
            "SAGEMAKER_MAX_CONCURRENT_TRANSFORMS": str(
                self.request.get("MaxConcurrentTransforms") or 1
            ),
        } | self.request.get("Environment", {})

    def _object(self, bucket: str, key: str, path: str) -> str | None:
        """Transform one object; the error message, or None. A failed one has no output."""
        source, result = self.directory / "in", self.directory / "out"
        lines = self.input.get("SplitType", "None") == "Line"
        try:
            self.aws.client("s3", self.region).download_file(bucket, key, str(source))
            with result.open("wb") as stream:
                for payload in payloads(source, lines, self.several, self.megabytes * MEGABYTE):
                    if self.stopping.is_set():
                        return "stopped"
                    stream.write(self._ask(payload, f"s3://{bucket}/{key}"))
                    if self.output.get("AssembleWith") == "Line":
                        stream.write(b"\n")
        except DataError as error:
            return str(error)
        except (*AWS_ERRORS, OSError) as error:
            return f"ClientError: {error}"
        target, prefix = split_uri(self.output["S3OutputPath"].rstrip("/") + "/")
        self.aws.client("s3", self.region).upload_file(str(result), target, f"{prefix}{path}.out")
        return None

    def _ask(self, payload: bytes, uri: str) -> bytes:
        headers = {
            "Content-Type": self.input.get("ContentType"),
            "Accept": self.output.get("Accept"),
        }
        config = self.request.get("ModelClientConfig", {})
        seconds = config.get("InvocationsTimeoutInSeconds") or DEFAULT_SECONDS
        assert self.worker  # `_phases` has started it
        try:
            answer = self.worker.ask(payload, {k: v for k, v in headers.items() if v}, seconds)
        except (worker.TooSlow, worker.Gone) as error:
            raise DataError(f"AlgorithmError: {uri}: {error}") from error
        if answer.status != 200:
            message = answer.data.decode("utf-8", "replace")
            self.log.log(f"{uri}: Bad HTTP status received from algorithm: {answer.status}")
            raise DataError(
                f"AlgorithmError: {uri}: Bad HTTP status received from algorithm: "
                f"{answer.status}: {message}"
            )
        return answer.data


def payloads(path: Path, lines: bool, several: bool, limit: int) -> Iterator[bytes]:
    """The payloads of a file, in its order.

    lines: split it at line ends (SplitType Line). several: as many of its lines in a payload as the
    limit allows, but no empty one (BatchStrategy MultiRecord). limit: bytes; 0 for none.

    Raises DataError.
    """
    if not lines:
        whole = path.read_bytes()
        _check(whole, limit, path.name)
        yield whole
        return
    batch: list[bytes] = []
    size = 0
    with path.open("rb") as stream:
        for number, line in enumerate(filter(None, (line.rstrip(b"\r\n") for line in stream)), 1):
            _check(line, limit, f"record {number} of {path.name}")
            if batch and (not several or (limit and size + 1 + len(line) > limit)):
                yield b"\n".join(batch)
                batch, size = [], 0
            batch.append(line)
            size += len(line) + (len(batch) > 1)
    if batch:
        yield b"\n".join(batch)


def _check(payload: bytes, limit: int, label: str) -> None:
    if limit and len(payload) > limit:
        raise DataError(
            f"ClientError: {label} has {len(payload)} bytes; MaxPayloadInMB allows {limit}. Split "
            "the input (SplitType Line), or raise MaxPayloadInMB."
        )
