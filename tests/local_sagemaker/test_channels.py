"""S3 -> /opt/ml/input/data/<channel>: which files, under which names, on which host."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from endpoint_harness import BUCKET, request
from local_sagemaker.jobs import channels
from local_sagemaker.jobs.aws import split_uri
from local_sagemaker.jobs.channels import DataError
from local_sagemaker.protocol.errors import AwsError

REGION = "us-east-1"


@pytest.fixture
def store(endpoint, tmp_path):
    """Objects under a prefix of this test's own, and how they reach hosts."""
    return Store(endpoint, tmp_path)


class Store:
    def __init__(self, endpoint, directory: Path) -> None:
        self.endpoint, self.directory = endpoint, directory
        self.prefix = f"channels/{uuid.uuid4().hex}"
        self.uri = f"s3://{BUCKET}/{self.prefix}"
        self.aws = endpoint.aws()

    def put(self, **objects: str) -> None:
        for name, body in objects.items():
            self.put_at(name, body)

    def put_at(self, name: str, body: str) -> None:
        self.endpoint.put(f"{self.prefix}/{name}", body)

    def fetch(self, uri: str, hosts: int = 1, mode: str | None = None, **source):
        """What each host then has: a list of {path below the channel: text}."""
        data = {"S3DataType": "S3Prefix", "S3Uri": uri} | source
        channel = {"ChannelName": "training", "DataSource": {"S3DataSource": data}}
        channel |= {"InputMode": mode} if mode else {}
        body = request("a-job", InputDataConfig=[channel])
        folders = {f"algo-{n + 1}": self.directory / f"algo-{n + 1}" for n in range(hosts)}
        channels.check(self.aws, body, REGION)
        channels.fetch(self.aws, body, REGION, folders)
        return [_files(folder / "input/data/training") for folder in folders.values()]


def _files(folder: Path) -> dict[str, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in found}


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_prefix(store, slash):
    store.put_at("data/a.txt", "a")
    store.put_at("data/deep/b.txt", "b")
    store.put_at("data/", "")  # the console's mark of a folder
    store.put_at("data-of-others/c.txt", "c")
    assert store.fetch(f"{store.uri}/data{slash}") == [{"a.txt": "a", "deep/b.txt": "b"}]


def test_a_prefix_that_is_one_object(store):
    store.put_at("data/part-0.txt", "a")
    store.put_at("data/part-1.txt", "b")
    assert store.fetch(f"{store.uri}/data/part-0.txt") == [{"part-0.txt": "a"}]


def test_a_prefix_that_ends_in_the_middle_of_names(store):
    store.put_at("data/part-0.txt", "a")
    store.put_at("data/part-1.txt", "b")
    store.put_at("data/other.txt", "c")
    assert store.fetch(f"{store.uri}/data/part-") == [{"part-0.txt": "a", "part-1.txt": "b"}]


def test_a_whole_bucket(store):
    name = f"whole-{uuid.uuid4().hex}"
    api = store.endpoint.client("s3")
    api.create_bucket(Bucket=name)
    api.put_object(Bucket=name, Key="deep/a.txt", Body=b"a")
    assert store.fetch(f"s3://{name}") == [{"deep/a.txt": "a"}]


def test_names_that_look_like_parts_of_an_address(store):
    assert split_uri("s3://bucket/a#b?c=d/é f") == ("bucket", "a#b?c=d/é f")
    assert split_uri("s3://bucket") == ("bucket", "")
    store.put_at("run #1?/a b.txt", "a")
    assert store.fetch(f"{store.uri}/run #1?/") == [{"a b.txt": "a"}]


def test_replicated_everywhere(store):
    store.put(a="1", b="2", c="3")
    everything = {"a": "1", "b": "2", "c": "3"}
    assert store.fetch(store.uri, 2, S3DataDistributionType="FullyReplicated") == [everything] * 2


def test_sharded_by_key(store):
    names = [f"part-{number}" for number in range(5)]
    store.put(**dict.fromkeys(names, "x"))
    first, second = store.fetch(store.uri, 2, S3DataDistributionType="ShardedByS3Key")
    assert sorted([*first, *second]) == names
    assert not set(first) & set(second)
    assert abs(len(first) - len(second)) == 1


def test_more_hosts_than_shards(store):
    store.put(only="x")
    found = store.fetch(store.uri, 3, S3DataDistributionType="ShardedByS3Key")
    assert found == [{"only": "x"}, {}, {}]


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_modes_that_a_script_cannot_tell_apart(store, mode):
    store.put(a="1")
    assert store.fetch(store.uri, mode=mode) == [{"a": "1"}]


def manifest(store, content: object) -> str:
    store.put_at("manifest", content if isinstance(content, str) else json.dumps(content))
    return f"{store.uri}/manifest"


def test_a_manifest(store):
    store.put_at("data/deep/a.txt", "a")
    store.put_at("data/b.txt", "b")
    store.put_at("data/left-out.txt", "c")
    uri = manifest(store, [{"prefix": f"{store.uri}/data/"}, "deep/a.txt", "b.txt"])
    assert store.fetch(uri, S3DataType="ManifestFile") == [{"deep/a.txt": "a", "b.txt": "b"}]


@pytest.mark.parametrize(
    "content",
    ["not json", [], {}, [{"prefx": "s3://b/"}], [{"prefix": 5}], [{"prefix": "s3://b/"}, 5]],
)
def test_a_manifest_that_is_none(store, content):
    with pytest.raises(DataError, match="is not of the form"):
        store.fetch(manifest(store, content), S3DataType="ManifestFile")


def test_a_manifest_that_names_what_is_not_there(store):
    uri = manifest(store, [{"prefix": f"{store.uri}/"}, "nowhere.txt"])
    with pytest.raises(DataError, match=r"Data download failed: s3://.*/nowhere.txt: Not Found"):
        store.fetch(uri, S3DataType="ManifestFile")


def test_a_key_that_would_leave_the_channel(store):
    store.put_at("data/x", "x")
    uri = manifest(store, [{"prefix": f"{store.uri}/data/"}, "../../escaped.txt"])
    with pytest.raises(DataError, match="would leave its directory"):
        store.fetch(uri, S3DataType="ManifestFile")
    assert not list(store.directory.rglob("escaped.txt"))


def test_a_key_with_two_slashes_stays_in_the_channel(store):
    """`data//a`: what follows the prefix begins with a slash, and is no absolute path."""
    name = f"absolute-{uuid.uuid4().hex}.txt"
    store.put_at(f"data//{name}", "a")
    assert store.fetch(f"{store.uri}/data/") == [{name: "a"}]
    assert not Path("/", name).exists()


@pytest.mark.parametrize("names", [["a", "a/b"], ["a/b", "a"]])
def test_a_file_where_a_directory_is_needed(store, names):
    for name in names:
        store.put_at(f"data/{name}", "x")
    uri = manifest(store, [{"prefix": f"{store.uri}/data/"}, *names])
    with pytest.raises(DataError, match="Rename one"):
        store.fetch(uri, S3DataType="ManifestFile")


def test_a_name_too_long_for_a_file(store):
    store.put_at("data/" + "x" * 300, "x")
    with pytest.raises(DataError, match="File name too long"):
        store.fetch(f"{store.uri}/data/")


def test_an_empty_prefix_is_refused_before_the_job_begins(store):
    with pytest.raises(AwsError, match="No S3 objects found under S3 URL"):
        store.fetch(f"{store.uri}/nothing")
