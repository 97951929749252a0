"""What a job leaves in S3: model.tar.gz, output.tar.gz, checkpoints, TensorBoard's files."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

from local_sagemaker.core.aws import LocalAws, split_uri
from local_sagemaker.core.s3_input import download_below
from local_sagemaker.protocol.errors import validation
from local_sagemaker.storage.files import open_below

# Member of the request -> AWS's default for its LocalPath, and the only place here.
COPIED = {
    "CheckpointConfig": "/opt/ml/checkpoints",
    "TensorBoardOutputConfig": "/opt/ml/output/tensorboard",
}
MAX_NAMES, MAX_LENGTH = 10, 200  # of the message about files that were left out


def check(request: dict) -> None:
    """Raise AwsError (ValidationException) for another place on the instances."""
    for member, only in COPIED.items():
        place = request.get(member, {}).get("LocalPath", only)
        if place.rstrip("/") != only:
            raise validation(
                f"{member}'s LocalPath is '{place}'; the emulator copies {only} only. Leave "
                "it out (of an estimator: checkpoint_local_path, container_local_output_path), "
                "and write there."
            )


class LeftBehind:
    """What a job leaves in its instances' folders, read so that no link of it leads elsewhere.

    hosts: name -> the instance's /opt/ml. stop: once it is set, what reads raises Abandoned.
    left_out: what was not copied, as it is called below /opt/ml.
    """

    def __init__(self, hosts: dict[str, Path], stop: threading.Event) -> None:
        self.roots, self.stop = list(hosts.values()), stop
        self.left_out: set[str] = set()

    def files(self, folder: str) -> Iterator[tuple[Path, str, Path]]:
        """(root, path below `folder`, path) of all files and links below a folder of /opt/ml."""
        for root in self.roots:
            place = root.resolve() / folder
            if os.path.realpath(place) != str(place):  # it leads elsewhere
                self.leave_out(root, root / folder)
                continue
            todo, paths = [root / folder], []
            while todo:
                for entry in self._entries(root, todo.pop()):
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                        paths.append(Path(entry.path))
            for path in sorted(paths):
                yield root, str(path.relative_to(root / folder)), path

    def open(self, root: Path, path: Path, key: str = "") -> io.FileIO | None:
        """The file to read; None, and noted, for a link out of /opt/ml and the like.

        key: (part of) its key in S3, which has to be UTF-8.
        """
        try:
            key.encode()
            return _Stream(open_below(root, path), self.stop)
        except FileNotFoundError:  # a link to nowhere, or the script removed it meanwhile
            return None
        except (OSError, UnicodeEncodeError):
            self.leave_out(root, path)
            return None

    def _entries(self, root: Path, folder: Path) -> list[os.DirEntry]:
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except (FileNotFoundError, NotADirectoryError):  # the script removed it
            return []
        except OSError:
            self.leave_out(root, folder)
            return []

    def leave_out(self, root: Path, path: Path) -> None:
        self.left_out.add(os.fsencode(path.relative_to(root)).decode("utf-8", "backslashreplace"))

    def message(self) -> str:
        """What was left out, for the job's log; empty if nothing was."""
        if not self.left_out:
            return ""
        names = [f"/opt/ml/{name[:MAX_LENGTH]}" for name in sorted(self.left_out)]
        rest = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        return (
            f"not copied to S3: {', '.join(names[:MAX_NAMES])}{rest}. Links that do not lead to a "
            "file in /opt/ml, names that are not UTF-8, and paths that are too long are left out."
        )


class Abandoned(Exception):
    """The job was told to stop while its files were being copied."""


class _Stream(io.FileIO):
    """A file that can be read until `stop` is set."""

    def __init__(self, descriptor: int, stop: threading.Event) -> None:
        super().__init__(descriptor)
        self.stop = stop

    def read(self, size: int | None = -1) -> bytes:
        if self.stop.is_set():
            raise Abandoned
        return super().read(size)


def syncs(aws: LocalAws, request: dict, region: str, left: LeftBehind) -> list[Sync]:
    """What is copied to S3 while the job runs."""
    running = []
    if config := request.get("CheckpointConfig"):
        running.append(Sync(aws, region, config["S3Uri"], left, "checkpoints"))
    if config := request.get("TensorBoardOutputConfig"):
        uri = f"{config['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}"
        running.append(Sync(aws, region, f"{uri}/tensorboard-output", left, "output/tensorboard"))
    return running


def upload(aws: LocalAws, request: dict, region: str, left: LeftBehind) -> str | None:
    """Pack and upload; the S3 URI of model.tar.gz, or None if there is no model.

    With CompressionType NONE the model's files are uploaded as they are, under one prefix.

    With several instances the archives hold the files of all; where two wrote the same name, the
    lowest-numbered instance's is taken. Raises Abandoned.
    """
    base = f"{request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}"
    s3, uploaded = aws.client("s3", region), {}
    for name, folder in (("model", "model"), ("output", "output/data")):
        files: dict[str, tuple[Path, Path]] = {}
        for root, relative, path in left.files(folder):
            files.setdefault(relative, (root, path))
        if not files:
            continue
        if name == "model" and request["OutputDataConfig"].get("CompressionType") == "NONE":
            uploaded[name] = f"{base}/output/model/"
            for relative, (root, path) in sorted(files.items()):
                bucket, key = split_uri(uploaded[name])
                if stream := left.open(root, path, relative):
                    with stream:
                        s3.upload_fileobj(stream, bucket, key + relative)
            continue
        archive = left.roots[0].parent.parent / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for relative, (root, path) in sorted(files.items()):
                _pack(tar, left, relative, root, path)
        uploaded[name] = f"{base}/output/{name}.tar.gz"
        bucket, key = split_uri(uploaded[name])
        with _Stream(os.open(archive, os.O_RDONLY), left.stop) as stream:
            s3.upload_fileobj(stream, bucket, key)
        archive.unlink()
    return uploaded.get("model")


def _pack(tar: tarfile.TarFile, left: LeftBehind, name: str, root: Path, path: Path) -> None:
    """Add a file, or a link as it is."""
    if path.is_symlink():
        tar.addfile(tar.gettarinfo(path, name))
    elif stream := left.open(root, path):
        with stream:
            member = tar.gettarinfo(arcname=name, fileobj=stream)
            tar.addfile(member, stream if member.isreg() else None)


def fetch_checkpoints(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> None:
    """CheckpointConfig's S3 prefix -> every instance's checkpoint directory."""
    uri = request["CheckpointConfig"]["S3Uri"].rstrip("/") + "/"
    for directory in hosts.values():
        download_below(aws, region, uri, directory / "checkpoints", "Data download failed:")


class Sync:
    """Copies new and changed files of some folders to S3, as SageMaker does while a job runs.

    A file is taken once it has not changed between two calls, so that a checkpoint that is
    being written is not uploaded half.
    """

    def __init__(self, aws: LocalAws, region: str, uri: str, left: LeftBehind, folder: str) -> None:
        self.aws, self.region, self.left, self.folder = aws, region, left, folder
        self.bucket, self.prefix = split_uri(uri.rstrip("/") + "/")
        # What was fetched is in S3 already. Sent again, it could replace what another instance
        # has written under the same name meanwhile.
        self.sent: dict[Path, tuple[int, int]] = {
            path: _mark(path.lstat()) for _, _, path in left.files(folder)
        }
        self.seen: dict[Path, tuple[int, int]] = {}

    def sync(self, final: bool = False) -> None:
        """Upload what has settled; everything if `final`. Raises Abandoned."""
        for root, key, path in self.left.files(self.folder):
            with contextlib.suppress(FileNotFoundError):  # the script removed it meanwhile
                if not path.is_symlink() and _mark(path.lstat()) == self.sent.get(path):
                    continue
            if (stream := self.left.open(root, path, key)) is None:
                continue
            with stream:
                mark = _mark(os.fstat(stream.fileno()))
                settled = final or self.seen.get(path) == mark
                self.seen[path] = mark
                if settled and self.sent.get(path) != mark:
                    s3 = self.aws.client("s3", self.region)
                    s3.upload_fileobj(stream, self.bucket, self.prefix + key)
                    self.sent[path] = mark


def _mark(status: os.stat_result) -> tuple[int, int]:
    """What changes when the file changes: time of change (ns) and size (bytes)."""
    return status.st_mtime_ns, status.st_size
