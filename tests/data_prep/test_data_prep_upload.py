"""Upload to S3, against moto."""

from __future__ import annotations

import os

import boto3
import pytest
from moto import mock_aws

import data_prep


@pytest.fixture
def s3(monkeypatch):
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
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


def upload(client, folder, uri="s3://kit/data", **options):
    return data_prep.upload(folder, uri, client=client, **options)


@pytest.mark.parametrize("uri", ["s3://kit/data", "s3://kit/data/"])
def test_upload(s3, folder, uri):
    assert upload(s3, folder, uri, quiet=True) == KEYS == keys(s3)
    assert s3.get_object(Bucket="kit", Key=KEYS[1])["Body"].read() == b"two"


def test_bucket_root(s3, folder):
    upload(s3, folder, "s3://kit")
    assert keys(s3) == ["training/part-00000.npz", "training/part-00001.npz"]


def test_only_what_differs_is_sent_again(s3, folder, capsys):
    upload(s3, folder)
    assert "sent 2 files, 0 were already there" in capsys.readouterr().out
    assert upload(s3, folder) == []
    assert "sent 0 files, 2 were already there" in capsys.readouterr().out
    (folder / "training/part-00001.npz").write_bytes(b"TWO")  # as long as it was, and newer
    os.utime(folder / "training/part-00001.npz", (4e9, 4e9))
    assert upload(s3, folder) == KEYS[1:]
    assert s3.get_object(Bucket="kit", Key=KEYS[1])["Body"].read() == b"TWO"
    os.utime(folder / "training/part-00001.npz", (1e9, 1e9))
    s3.put_object(Bucket="kit", Key=KEYS[0], Body=b"four")  # another size
    assert upload(s3, folder) == KEYS[:1]


def test_other_objects_are_named_and_left_alone(s3, folder, capsys):
    s3.put_object(Bucket="kit", Key="data/training/part-00007.npz", Body=b"old")
    s3.put_object(Bucket="kit", Key="data2/x", Body=b"no business of ours")
    upload(s3, folder)
    assert "1 other objects are under this prefix" in capsys.readouterr().out
    assert "data/training/part-00007.npz" in keys(s3)


def test_nothing_to_upload(s3, tmp_path):
    with pytest.raises(data_prep.DataError, match="holds no files"):
        upload(s3, tmp_path / "none")
