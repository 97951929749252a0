"""Puts a job's input where a script finds it: S3 -> /opt/ml/input/data/<channel>.

S3Prefix; FullyReplicated and ShardedByS3Key; File and FastFile (copied:
a script cannot tell, but for the time to the first byte).
"""

from __future__ import annotations

import shutil
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from local_sagemaker.core.aws import LocalAws, split_uri
from local_sagemaker.core.s3_input import KIND, download, inside, objects_below
from local_sagemaker.protocol.errors import validation


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
        objects, from_s3 = [], ""
        try:
            objects = aws.objects(uri, region)
        except ClientError as error:
            from_s3 = f" Error message from S3: {error.response['Error']['Message']}"
        except BotoCoreError as error:  # no name that a bucket could have
            from_s3 = f" Error message from S3: {error}"
        if not objects:
            raise validation(
                f'No S3 objects found under S3 URL "{uri}" given in input data source. Please '
                f"ensure that the bucket exists in the selected region ({region}), that objects "
                f'exist under that S3 prefix, and that the role "{request["RoleArn"]}" has '
                f'"s3:ListBucket" permissions on bucket "{split_uri(uri)[0]}".{from_s3}'
            )


def _check_kind(channel: dict, default_mode: str) -> None:
    """Refuse what AWS has and the emulator lacks."""
    where = f"Channel '{channel['ChannelName']}'"
    source = channel["DataSource"].get("S3DataSource")
    if source is None:
        raise validation(
            f"{where}: the emulator has S3DataSource only; file systems (EFS, FSx) exist on AWS."
        )
    if source["S3DataType"] != KIND:
        raise validation(
            f"{where}: S3DataType {source['S3DataType']} is not offered by the emulator; put the "
            f"files below one prefix ({KIND})."
        )
    if channel.get("InputMode", default_mode) == "Pipe":
        raise validation(
            f"{where}: Pipe mode is legacy and not offered by the emulator. Use FastFile, "
            "which streams too."
        )


def fetch(aws: LocalAws, request: dict, region: str, hosts: dict[str, Path]) -> None:
    """Fill every channel on every host. hosts: name -> the instance's /opt/ml."""
    for channel in request.get("InputDataConfig", []):
        name, source = channel["ChannelName"], channel["DataSource"]["S3DataSource"]
        objects = objects_below(aws, source["S3Uri"], region)
        sharded = source.get("S3DataDistributionType") == "ShardedByS3Key"
        for number, directory in enumerate(hosts.values()):
            target = directory / "input" / "data" / name
            target.mkdir(parents=True)
            shard = objects[number :: len(hosts)] if sharded else objects
            first = next(iter(hosts.values())) / "input" / "data" / name
            for bucket, key, path in shard:
                place = inside(target, path, key)
                if number and not sharded:
                    shutil.copyfile(inside(first, path, key), place)
                else:
                    download(aws, region, bucket, key, place, "Data download failed:")
