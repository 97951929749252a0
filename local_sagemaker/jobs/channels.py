"""Puts a job's input where a script finds it: S3 -> /opt/ml/input/data/<channel>.

S3Prefix and ManifestFile; FullyReplicated and ShardedByS3Key; File and FastFile (copied:
a script cannot tell, but for the time to the first byte).
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from botocore.exceptions import ClientError

from local_sagemaker.jobs.aws import LocalAws, split_uri
from local_sagemaker.server.errors import AwsError, validation

Object = tuple[str, str, str]  # bucket, key, path below the channel's directory


class DataError(Exception):
    """Input that cannot be fetched; the message becomes the job's FailureReason."""


def check(aws: LocalAws, request: dict, region: str) -> None:
    """Refuse, as AWS does, a request whose S3 input does not exist."""
    for channel in request.get("InputDataConfig", []):
        source = channel.get("DataSource", {}).get("S3DataSource")
        if source is None:
            raise validation(
                f"Channel '{channel['ChannelName']}': the local endpoint has S3DataSource only; "
                "file systems (EFS, FSx) exist on AWS."
            )
        uri = source["S3Uri"]
        why = None
        try:
            found = aws.objects(uri, region)
        except ClientError as error:
            found, why = [], error.response["Error"]["Message"]
        if not found:
            raise _no_objects(uri, region, request["RoleArn"], why)
        if channel.get("InputMode", "File") == "Pipe":
            raise validation(
                f"Channel '{channel['ChannelName']}': Pipe mode is legacy and not offered by the "
                "local endpoint. Use FastFile, which streams too."
            )


def _no_objects(uri: str, region: str, role: str, why: str | None) -> AwsError:
    bucket = split_uri(uri)[0]
    message = (
        f'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure '
        f"that the bucket exists in the selected region ({region}), that objects exist under "
        f'that S3 prefix, and that the role "{role}" has "s3:ListBucket" permissions on bucket '
        f'"{bucket}".'
    )
    return validation(message + (f" Error message from S3: {why}" if why else ""))


def fetch(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> None:
    """Fill every channel on every host. hosts: name -> the instance's /opt/ml."""
    for channel in request.get("InputDataConfig", []):
        name, source = channel["ChannelName"], channel["DataSource"]["S3DataSource"]
        objects = _objects(aws, source, region)
        sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
        for number, directory in enumerate(hosts.values()):
            target = directory / "input" / "data" / name
            target.mkdir(parents=True)
            mine = objects[number :: len(hosts)] if sharded else objects
            first = next(iter(hosts.values())) / "input" / "data" / name
            for bucket, key, path in mine:
                if number and not sharded:
                    _copy(first / path, target / path)
                else:
                    _download(aws, region, bucket, key, target / path)


def _objects(aws: LocalAws, source: dict, region: str) -> list[Object]:
    uri = source["S3Uri"]
    if source.get("S3DataType") == "ManifestFile":
        return _from_manifest(aws, uri, region)
    bucket, prefix = split_uri(uri)
    # Names below the channel are what follows the prefix's last slash.
    base = prefix if prefix.endswith("/") else prefix.rpartition("/")[0] + "/" * ("/" in prefix)
    found = [(bucket, key, key[len(base) :]) for _, key, _ in aws.objects(uri, region)]
    if prefix and not prefix.endswith("/"):  # s3://b/data means s3://b/data/ when that exists
        inside = [(b, k, k[len(prefix) + 1 :]) for b, k, _ in found if k.startswith(prefix + "/")]
        found = inside or found
    return found


def _from_manifest(aws: LocalAws, uri: str, region: str) -> list[Object]:
    bucket, key = split_uri(uri)
    try:
        raw = aws.client("s3", region).get_object(Bucket=bucket, Key=key)["Body"].read()
        entries = json.loads(raw)
        prefix = entries[0]["prefix"]
        names = [str(name) for name in entries[1:]]
    except ClientError as error:
        raise DataError(f"Manifest {uri}: {error.response['Error']['Message']}") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise DataError(
            f'Manifest {uri} is not of the form [{{"prefix": "s3://..."}}, "key", ...]: {error}'
        ) from error
    base_bucket, base = split_uri(prefix)
    return [(base_bucket, base + name, name) for name in names]


def _download(aws: LocalAws, region: str, bucket: str, key: str, path: Path) -> None:
    _make_parent(path, key)
    try:
        aws.client("s3", region).download_file(bucket, key, str(path))
    except ClientError as error:
        message = error.response["Error"]["Message"]
        raise DataError(f"Data download failed: s3://{bucket}/{key}: {message}") from error


def _copy(source: Path, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, path)


def _make_parent(path: Path, key: str) -> None:
    if ".." in path.parts:
        raise DataError(f"S3 key '{key}' would leave the channel's directory.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(
            f"S3 key '{key}' needs a directory where another object has a file. Rename one."
        ) from error
