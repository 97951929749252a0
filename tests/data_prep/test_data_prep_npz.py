"""digits and MNIST: content, repeatability, refusals."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from click.testing import CliRunner
from data_prep_helpers import mnist_arrays, mnist_files, serve, sums

import data_prep
from data_prep import mnist
from data_prep.__main__ import main

# Pixels and labels of the test channel, not the .npz files: zlib versions pack differently.
DIGITS_TEST_SHA256 = "e1a44657b636c913aa4033e86b81825e0f5e13d9e4bfdd7eebf1d1029f30d24d"


def read(channel):
    parts = [np.load(path) for path in sorted(channel.glob("part-*.npz"))]
    return (
        np.concatenate([part["images"] for part in parts]),
        np.concatenate([part["labels"] for part in parts]),
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with MNIST's four files, small ones."""
    monkeypatch.setattr(mnist, "SHA256", sums(mnist_files()))
    place = tmp_path / "originals"
    place.mkdir()
    for name, data in mnist_files().items():
        (place / name).write_bytes(data)
    return place


def test_digits_as_tfrecord_hold_the_same(tmp_path):
    import tensorflow as tf

    npz = data_prep.digits.prepare(tmp_path / "npz", quiet=True)
    out = data_prep.digits.prepare(tmp_path / "tfrecord", as_tfrecord=True, quiet=True)
    images, labels = read(npz / "test")
    files = sorted(map(str, (out / "test").glob("*.tfrecord")))
    for record, image, label in zip(tf.data.TFRecordDataset(files), images, labels, strict=True):
        features = tf.train.Example.FromString(record.numpy()).features.feature
        assert features["image"].bytes_list.value[0] == image.tobytes()
        assert features["label"].int64_list.value[0] == label
    assert len(list((out / "training").glob("*.tfrecord"))) == 4


def test_digits_keep_the_contract(tmp_path):
    out = data_prep.digits.prepare(tmp_path / "digits", quiet=True)
    assert out == tmp_path / "digits"
    assert len(list((out / "training").iterdir())) == 4
    assert [path.name for path in (out / "test").iterdir()] == ["part-00000.npz"]
    for channel, count in (("training", 1437), ("test", 360)):
        images, labels = read(out / channel)
        assert images.shape == (count, 8, 8, 1) and images.dtype == np.uint8
        assert labels.shape == (count,) and labels.dtype == np.int64
        assert images.max() == 255 and images.min() == 0
        assert set(labels) == set(range(10))


def test_digits_are_all_there_and_belong_to_their_labels(tmp_path):
    out = data_prep.digits.prepare(tmp_path / "digits", quiet=True)
    channels = [read(out / name) for name in ("training", "test")]
    made = [
        (image.tobytes(), int(label)) for c in channels for image, label in zip(*c, strict=True)
    ]
    from sklearn.datasets import load_digits

    raw = load_digits()
    scaled = [[[int(v) * 255 // 16 for v in row] for row in image] for image in raw.images]
    true = [(np.uint8(i).tobytes(), int(t)) for i, t in zip(scaled, raw.target, strict=True)]
    assert sorted(made) == sorted(true)
    assert made != true, "not shuffled"


def test_digits_are_the_same_bytes_each_time(tmp_path):
    for name in ("one", "two"):
        data_prep.digits.prepare(tmp_path / name, quiet=True)
    assert (tmp_path / "one/manifest.json").read_text() == (
        tmp_path / "two/manifest.json"
    ).read_text()


def test_the_digits_themselves_have_not_moved(tmp_path):
    """Lessons quote accuracies: the same picture must stay in the same file."""
    data_prep.digits.prepare(tmp_path / "digits", quiet=True)
    images, labels = read(tmp_path / "digits/test")
    content = hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest()
    assert content == DIGITS_TEST_SHA256


def check_mnist(out, shards):
    arrays = mnist_arrays()
    assert len(list((out / "training").iterdir())) == shards
    for channel, prefix in (("training", "train"), ("test", "t10k")):
        images, labels = read(out / channel)
        assert images.dtype == np.uint8 and labels.dtype == np.int64
        assert np.array_equal(images[..., 0], arrays[f"{prefix}-images-idx3-ubyte.gz"])
        assert np.array_equal(labels, arrays[f"{prefix}-labels-idx1-ubyte.gz"])


def test_mnist_from_a_folder(tmp_path, folder):
    check_mnist(data_prep.mnist.prepare(tmp_path / "mnist", folder, shards=3, quiet=True), 3)


def test_mnist_downloads_once(tmp_path, server, folder, monkeypatch):
    for name, data in mnist_files().items():
        server.answers["/good/" + name] = [serve(data)]
    monkeypatch.setattr(mnist, "MIRRORS", (server.url + "good/",))
    check_mnist(data_prep.mnist.prepare(tmp_path / "mnist", quiet=True), 8)
    check_mnist(data_prep.mnist.prepare(tmp_path / "mnist", shards=2, quiet=True), 2)
    assert len(server.requests) == 4, "other options must not download again"
    assert len(list((tmp_path / "downloads/mnist").iterdir())) == 4


def test_too_many_shards(tmp_path, folder, tree):
    with pytest.raises(data_prep.DataError, match="cannot split 40 images into 41 files"):
        data_prep.mnist.prepare(tmp_path / "out/mnist", folder, shards=41, quiet=True)
    assert tree(tmp_path / "out") == []


def test_command_line(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, [*map(str, arguments)])

    out = tmp_path / "digits"
    assert (
        "wrote 1437 training, 360 test images; training in 4 files"
        in run("digits", "--out", out).output
    )
    again = run("digits", "--out", out)
    assert again.exit_code == 0 and "up to date" in again.output
    assert run("digits", "--out", out, "--quiet").output == ""
    failed = run("mnist", "--out", tmp_path / "mnist", "--source", tmp_path)
    assert failed.exit_code == 1
    assert "--source FOLDER" in failed.output and "Traceback" not in failed.output
    for command in ((), ("digits",), ("mnist",), ("cifar10",), ("upload",)):
        shown = run(*command, "--help")
        assert shown.exit_code == 0 and "Usage:" in shown.output


def test_the_manifest_names_every_file(tmp_path):
    out = data_prep.digits.prepare(tmp_path / "digits", quiet=True)
    content = json.loads((out / "manifest.json").read_text())
    assert content["recipe"] == {"dataset": "digits", "version": 1, "shards": 4}
    assert len(content["files"]) == 5
    entry = content["files"]["test/part-00000.npz"]
    assert entry["bytes"] == (out / "test/part-00000.npz").stat().st_size
