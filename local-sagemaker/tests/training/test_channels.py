"""S3 -> /opt/ml/input/data/<channel>: which files, under which names, on which host."""

import uuid
from pathlib import Path

import pytest
from emulator_harness import request

from local_sagemaker.core.aws import split_uri
from local_sagemaker.core.s3_input import DataError, inside
from local_sagemaker.pytest_plugin import BUCKET
from local_sagemaker.training import channels

REGION = "us-east-1"


class Store:
    """Objects under a prefix of a test's own, and how they reach hosts."""

    def __init__(self, emulator, directory: Path) -> None:
        self.emulator, self.directory = emulator, directory
        self.prefix = f"channels/{uuid.uuid4().hex}"
        self.uri = f"s3://{BUCKET}/{self.prefix}"
        self.aws = emulator.aws

    def put(self, *names: str) -> None:
        """Objects that hold their own names."""
        for name in names:
            self.emulator.put(f"{self.prefix}/{name}", name)

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
    result = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in result}


@pytest.fixture
def store(emulator, tmp_path):
    return Store(emulator, tmp_path)


ALL = ("data/a.txt", "data/deep/b.txt", "data/", "data-of-others/c.txt", "run #1?/a b.txt")
PREFIXES = {  # what follows the test's own prefix -> the files of the channel, and their objects
    "data": {"a.txt": "data/a.txt", "deep/b.txt": "data/deep/b.txt"},
    "data/": {"a.txt": "data/a.txt", "deep/b.txt": "data/deep/b.txt"},
    "data/a.txt": {"a.txt": "data/a.txt"},
    "data/de": {"deep/b.txt": "data/deep/b.txt"},
    "run #1?/": {"a b.txt": "run #1?/a b.txt"},
}


@pytest.mark.parametrize("mode", ["File", "FastFile"])  # which a script cannot tell apart
@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix(store, prefix, mode):
    store.put(*ALL)
    assert store.fetch(f"{store.uri}/{prefix}", mode=mode) == [PREFIXES[prefix]]


def test_a_whole_bucket(store):
    name = f"whole-{uuid.uuid4().hex}"
    api = store.emulator.client("s3")
    api.create_bucket(Bucket=name)
    api.put_object(Bucket=name, Key="deep/a.txt", Body=b"a")
    assert split_uri(f"s3://{name}") == (name, "")
    assert store.fetch(f"s3://{name}") == [{"deep/a.txt": "a"}]


def test_replicated_everywhere_or_sharded_by_key(store):
    names = [f"part-{number}" for number in range(5)]
    store.put(*names)
    whole = {name: name for name in names}
    assert store.fetch(store.uri, 2, S3DataDistributionType="FullyReplicated") == [whole] * 2
    store.directory /= "sharded"
    first, second = store.fetch(store.uri, 2, S3DataDistributionType="ShardedByS3Key")
    assert first | second == whole and not set(first) & set(second)
    assert abs(len(first) - len(second)) == 1
    store.directory /= "more hosts than shards"
    item = f"{store.uri}/part-0"
    result = store.fetch(item, 3, S3DataDistributionType="ShardedByS3Key")
    assert result == [{"part-0": "part-0"}, {}, {}]


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (["../../escaped.txt"], "would leave its directory"),
        (["a", "a/b"], "Rename it|rename one"),
        (["x" * 300], "File name too long"),
        (["a\0b"], "no name holds a zero byte"),
    ],
)
def test_keys_that_cannot_be_files(store, names, why):
    store.put(*(f"data/{name}" for name in names))
    with pytest.raises(DataError, match=why):
        store.fetch(f"{store.uri}/data/")
    assert not list(store.directory.rglob("escaped.txt"))


def test_a_key_with_two_slashes_stays_in_the_channel(store):
    """`data//a`: what follows the prefix begins with a slash, and is no absolute path."""
    name = f"absolute-{uuid.uuid4().hex}.txt"
    store.put(f"data//{name}")
    assert list(store.fetch(f"{store.uri}/data/")[0]) == [name]
    assert not Path("/", name).exists()


def test_every_name_stays_below_its_folder(tmp_path):
    """Whatever the key: the file is inside, or the key is refused."""
    good = ("a", "/a", "//a//b", "./a", "a/./b", "~/a", "...", "a\\..\\b", " ", "-rf")
    for number, name in enumerate(good):
        folder = tmp_path / str(number)
        path = inside(folder, name, name)
        assert path.resolve().is_relative_to(folder.resolve()), name
    for name in ("..", "a/..", "../a", "/../a", "a/../../b", "a\0b"):
        with pytest.raises(DataError):
            inside(tmp_path / "channel", name, name)
