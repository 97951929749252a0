"""What a job leaves in S3: model.tar.gz, output.tar.gz, checkpoints, TensorBoard's files."""

from __future__ import annotations

import tarfile
from pathlib import Path

from local_sagemaker.jobs.aws import LocalAws, split_uri
from local_sagemaker.jobs.channels import inside
from local_sagemaker.protocol.errors import validation

# Member of the request -> AWS's default for its LocalPath, and the only place here.
COPIED = {
    "CheckpointConfig": "/opt/ml/checkpoints",
    "TensorBoardOutputConfig": "/opt/ml/output/tensorboard",
}


def check(request: dict) -> None:
    """Raise AwsError (ValidationException) for another place on the instances."""
    for member, only in COPIED.items():
        place = request.get(member, {}).get("LocalPath", only)
        if place.rstrip("/") != only:
            raise validation(
                f"{member}'s LocalPath is '{place}'; the local endpoint copies {only} only. Leave "
                "it out (of an estimator: checkpoint_local_path, container_local_output_path), "
                "and write there."
            )


def syncs(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> list[Sync]:
    """What is copied to S3 while the job runs. hosts: name -> the instance's /opt/ml."""
    found = []
    if config := request.get("CheckpointConfig"):
        folders = [directory / "checkpoints" for directory in hosts.values()]
        found.append(Sync(aws, region, config["S3Uri"], folders))
    if config := request.get("TensorBoardOutputConfig"):
        uri = f"{config['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}"
        folders = [directory / "output" / "tensorboard" for directory in hosts.values()]
        found.append(Sync(aws, region, f"{uri}/tensorboard-output", folders))
    return found


def upload(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> str | None:
    """Pack and upload; the S3 URI of model.tar.gz, or None if there is no model.

    With CompressionType NONE the model's files are uploaded as they are, under one prefix.

    hosts: name -> the instance's /opt/ml. With several instances the archives hold the
    files of all; where two wrote the same name, the lowest-numbered instance's is taken.
    """
    base = f"{request['OutputDataConfig']['S3OutputPath'].rstrip('/')}/{request['TrainingJobName']}"
    uploaded = {}
    for name, folder in (("model", "model"), ("output", "output/data")):
        files = _files([directory / folder for directory in hosts.values()])
        if not files:
            continue
        if name == "model" and request["OutputDataConfig"].get("CompressionType") == "NONE":
            uploaded[name] = f"{base}/output/model/"
            for relative, path in sorted(files.items()):
                bucket, key = split_uri(uploaded[name] + relative)
                aws.client("s3", region).upload_file(str(path), bucket, key)
            continue
        archive = next(iter(hosts.values())).parent.parent / f"{name}.tar.gz"
        with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
            for relative, path in sorted(files.items()):
                tar.add(path, arcname=relative, recursive=False)
        uploaded[name] = f"{base}/output/{name}.tar.gz"
        bucket, key = split_uri(uploaded[name])
        aws.client("s3", region).upload_file(str(archive), bucket, key)
        archive.unlink()
    return uploaded.get("model")


def _files(folders: list[Path]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_file() or path.is_symlink():
                found.setdefault(str(path.relative_to(folder)), path)
    return found


def fetch_checkpoints(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> None:
    """CheckpointConfig's S3 prefix -> every instance's checkpoint directory."""
    uri = request["CheckpointConfig"]["S3Uri"].rstrip("/") + "/"
    bucket, prefix = split_uri(uri)
    for _, key, _ in aws.objects(uri, region):
        for directory in hosts.values():
            path = inside(directory / "checkpoints", key[len(prefix) :], key)
            aws.client("s3", region).download_file(bucket, key, str(path))


class Sync:
    """Copies new and changed files of some folders to S3, as SageMaker does while a job runs.

    A file is taken once it has not changed between two calls, so that a checkpoint that is
    being written is not uploaded half.
    """

    def __init__(self, aws: LocalAws, region: str, uri: str, folders: list[Path]) -> None:
        self.aws, self.region, self.folders = aws, region, folders
        self.bucket, self.prefix = split_uri(uri.rstrip("/") + "/")
        # What was fetched is in S3 already. Sent again, it could replace what another instance
        # has written under the same name meanwhile.
        self.sent: dict[Path, tuple[int, int]] = {
            path: _mark(path) for folder in folders for path in folder.rglob("*") if path.is_file()
        }
        self.seen: dict[Path, tuple[int, int]] = {}

    def sync(self, final: bool = False) -> None:
        """Upload what has settled; everything if `final`."""
        for folder in self.folders:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    self._consider(path, folder, final)

    def _consider(self, path: Path, folder: Path, final: bool) -> None:
        try:
            mark = _mark(path)
            settled = final or self.seen.get(path) == mark
            self.seen[path] = mark
            if not settled or self.sent.get(path) == mark:
                return
            key = self.prefix + str(path.relative_to(folder))
            self.aws.client("s3", self.region).upload_file(str(path), self.bucket, key)
            self.sent[path] = mark
        except FileNotFoundError:  # the script replaced or removed it meanwhile
            return


def _mark(path: Path) -> tuple[int, int]:
    """What changes when the file changes: time of change (ns) and size (bytes)."""
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size
