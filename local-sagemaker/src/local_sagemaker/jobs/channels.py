"""Puts a job's input where a script finds it: S3 -> /opt/ml/input/data/<channel>.

S3Prefix and ManifestFile; FullyReplicated and ShardedByS3Key; File and FastFile (copied:
a script cannot tell, but for the time to the first byte).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker.jobs.aws import AWS_ERRORS, LocalAws, split_uri
from local_sagemaker.protocol.errors import AwsError, validation

SOURCE = "sourcedir.tar.gz"  # image/toolkit.py looks for it
KINDS = ("S3Prefix", "ManifestFile")
Object = tuple[str, str, str]  # bucket, key, path below the channel's directory


class DataError(Exception):
    """Input that cannot be fetched; the message becomes the job's FailureReason."""


def check(aws: LocalAws, request: dict, region: str) -> None:
    """Refuse, as AWS does, a request whose S3 input does not exist."""
    default_mode = request["AlgorithmSpecification"].get("TrainingInputMode", "File")
    seen = set()
    for channel in request.get("InputDataConfig", []):
        name = channel["ChannelName"]
        if name in seen or name in (".", ".."):
            raise validation(
                f"Channel '{name}': a channel needs a name of its own, and no dots only."
            )
        seen.add(name)
        _check_kind(channel, default_mode)
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        found, why = [], None
        try:
            found = aws.objects(uri, region)
        except ClientError as error:
            why = error.response["Error"]["Message"]
        except BotoCoreError as error:  # no name that a bucket could have
            why = str(error)
        if not found:
            raise _no_objects(uri, region, request["RoleArn"], why)


def _check_kind(channel: dict, default_mode: str) -> None:
    """Refuse what AWS has and the emulator lacks."""
    where = f"Channel '{channel['ChannelName']}'"
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise validation(
            f"{where}: the emulator has S3DataSource only; file systems (EFS, FSx) exist on AWS."
        )
    if source["S3DataType"] not in KINDS:
        raise validation(
            f"{where}: S3DataType {source['S3DataType']} is not offered by the emulator; "
            f"{' and '.join(KINDS)} are."
        )
    if channel.get("InputMode", default_mode) == "Pipe":
        raise validation(
            f"{where}: Pipe mode is legacy and not offered by the emulator. Use FastFile, "
            "which streams too."
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
        objects = objects_of(aws, source, region)
        sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
        for number, directory in enumerate(hosts.values()):
            target = directory / "input" / "data" / name
            target.mkdir(parents=True)
            mine = objects[number :: len(hosts)] if sharded else objects
            first = next(iter(hosts.values())) / "input" / "data" / name
            for bucket, key, path in mine:
                place = inside(target, path, key)
                if number and not sharded:
                    shutil.copyfile(inside(first, path, key), place)
                else:
                    _download(aws, region, bucket, key, place)


def fetch_source(aws: LocalAws, request: dict, region: str, folders: list[Path]) -> None:
    """Put the script's archive into each folder, if S3 has it: else the instance says so itself."""
    uri = request.get("HyperParameters", {}).get("sagemaker_submit_directory", "").strip('"')
    if not uri.startswith("s3://"):
        return
    bucket, key = split_uri(uri)
    first = folders[0] / SOURCE
    with contextlib.suppress(*AWS_ERRORS, OSError):
        aws.client("s3", region).download_file(bucket, key, str(first))
        for folder in folders[1:]:
            shutil.copyfile(first, folder / SOURCE)


def objects_of(aws: LocalAws, source: dict, region: str) -> list[Object]:
    """What a channel, or a transform job, takes from S3: S3Prefix or ManifestFile."""
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
        names = entries[1:]
        if not all(isinstance(one, str) for one in [prefix, *names]):
            raise TypeError("a prefix or a key is not a string")
    except ClientError as error:
        raise DataError(f"Manifest {uri}: {error.response['Error']['Message']}") from error
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise DataError(
            f'Manifest {uri} is not of the form [{{"prefix": "s3://..."}}, "key", ...]: {error}'
        ) from error
    base_bucket, base = split_uri(prefix)
    return [(base_bucket, base + name, name) for name in names]


def _download(aws: LocalAws, region: str, bucket: str, key: str, path: Path) -> None:
    where = f"Data download failed: s3://{bucket}/{key}"
    try:
        aws.client("s3", region).download_file(bucket, key, str(path))
    except ClientError as error:
        raise DataError(f"{where}: {error.response['Error']['Message']}") from error
    except (BotoCoreError, OSError) as error:
        raise DataError(f"{where}: {error}") from error


def inside(folder: Path, name: str, key: str) -> Path:
    """The file `name` below `folder`, with its directory made.

    Raises DataError for an S3 key that would leave the folder, or that needs a directory
    where another object has a file, or the other way round.
    """
    path = folder / name.lstrip("/")  # "data//part" is a key as good as any
    if ".." in path.parts:
        raise DataError(f"S3 key '{key}' would leave its directory on the instance.")
    if "\0" in name:
        raise DataError(f"S3 key {key!r} cannot be a file: no name holds a zero byte. Rename it.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        clash = True
    except OSError as error:
        raise DataError(f"S3 key '{key}' cannot be a file: {error.strerror}") from error
    else:
        clash = os.path.isdir(path)  # Path.is_dir() raises for a name that is too long
    if clash:
        raise DataError(
            f"S3 key '{key}' needs a directory where another object has a file, or the other way "
            "round. Rename one."
        )
    return path
