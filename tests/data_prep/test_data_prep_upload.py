"""Upload to S3, against moto."""

import os
import socket
import time

import boto3
import pytest
from click.testing import CliRunner
from moto import mock_aws

import data_prep
from data_prep import s3 as s3_module
from data_prep.__main__ import main


@pytest.fixture
def s3(clean_aws, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        client = boto3.client("s3")
        client.create_bucket(Bucket="kit")
        yield client


@pytest.fixture
def folder(tmp_path):
    digits = tmp_path / "digits"
    (digits / "training").mkdir(parents=True)
    (digits / "training/part-00000.npz").write_bytes(b"one")
    (digits / "training/part-00001.npz").write_bytes(b"two")
    (digits / "training/.DS_Store").write_bytes(b"litter")
    for path in digits.rglob("*"):
        os.utime(path, (1e9, 1e9))
    return digits


def keys(client):
    return [item["Key"] for item in client.list_objects_v2(Bucket="kit").get("Contents", [])]


KEYS = ["data/training/part-00000.npz", "data/training/part-00001.npz"]


@pytest.mark.parametrize("uri", ["s3://kit/data", "s3://kit/data/"])
def test_upload(s3, folder, uri):
    result = data_prep.upload(folder, uri, client=s3, quiet=True)
    assert result.sent == KEYS == keys(s3)
    assert s3.get_object(Bucket="kit", Key=KEYS[1])["Body"].read() == b"two"


def test_bucket_root(s3, folder):
    data_prep.upload(folder, "s3://kit", quiet=True)
    assert keys(s3) == ["training/part-00000.npz", "training/part-00001.npz"]


def test_only_what_differs_is_sent_again(s3, folder):
    data_prep.upload(folder, "s3://kit/data", client=s3, quiet=True)
    stamps = [s3.head_object(Bucket="kit", Key=key)["LastModified"] for key in KEYS]
    again = data_prep.upload(folder, "s3://kit/data", client=s3, quiet=True)
    assert again.sent == [] and again.skipped == KEYS
    assert stamps == [s3.head_object(Bucket="kit", Key=key)["LastModified"] for key in KEYS]
    (folder / "training/part-00001.npz").write_bytes(b"TWO")  # as long as it was, and newer
    os.utime(folder / "training/part-00001.npz", (4e9, 4e9))
    assert data_prep.upload(folder, "s3://kit/data", quiet=True).sent == KEYS[1:]
    assert s3.get_object(Bucket="kit", Key=KEYS[1])["Body"].read() == b"TWO"
    os.utime(folder / "training/part-00001.npz", (1e9, 1e9))
    s3.put_object(Bucket="kit", Key=KEYS[0], Body=b"four")  # another size
    assert data_prep.upload(folder, "s3://kit/data", quiet=True).sent == KEYS[:1]


def test_other_objects_are_named_and_left_alone(s3, folder, capsys):
    s3.put_object(Bucket="kit", Key="data/training/part-00007.npz", Body=b"old")
    s3.put_object(Bucket="kit", Key="data2/x", Body=b"no business of ours")
    result = data_prep.upload(folder, "s3://kit/data")
    assert result.others == ["data/training/part-00007.npz"]
    assert "1 other objects are under this prefix" in capsys.readouterr().out
    assert "data/training/part-00007.npz" in keys(s3)


def test_errors_name_the_way_out(s3, folder):
    with pytest.raises(data_prep.DataError, match="There is no bucket nowhere: create it"):
        data_prep.upload(folder, "s3://nowhere/data", client=s3)
    silent = boto3.client(
        "s3",
        endpoint_url="http://127.0.0.1:9",
        config=boto3.session.Config(retries={"total_max_attempts": 1}),
    )
    with pytest.raises(data_prep.DataError, match="AWS_ENDPOINT_URL"):
        data_prep.upload(folder, "s3://kit/data", client=silent)


def test_a_silent_server_is_not_waited_for_without_end(folder, monkeypatch):
    """The client that `upload` makes gives up: its patience, cut short here, is passed on."""
    monkeypatch.setattr(s3_module, "PATIENCE", {**s3_module.PATIENCE, "read_timeout": 0.3})
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listening.getsockname()[1]}")
        started = time.monotonic()
        with pytest.raises(data_prep.DataError, match="S3 does not answer"):
            data_prep.upload(folder, "s3://kit/data")
    assert time.monotonic() - started < 60


def test_command(s3, folder):
    run = CliRunner().invoke(main, ["upload", str(folder), "s3://kit/data"])
    assert run.exit_code == 0, run.output
    assert "sent 2 files, 0 were already there" in run.output
    run = CliRunner().invoke(main, ["upload", str(folder), "s3://kit/data"])
    assert "sent 0 files, 2 were already there" in run.output
