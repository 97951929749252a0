"""digits and MNIST: content, repeatability, refusals."""

from __future__ import annotations

import gzip
import hashlib
import json

import numpy as np
import pytest
from click.testing import CliRunner
from data_prep_helpers import (
    idx_images,
    idx_labels,
    mnist_arrays,
    mnist_files,
    serve,
    status,
    sums,
)
from sklearn.datasets import load_digits

import data_prep
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
def folder(tmp_path):
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


def test_mnist_from_a_folder(tmp_path, folder):
    files, arrays = mnist_files(), mnist_arrays()
    out = data_prep.mnist.prepare(
        tmp_path / "mnist", folder, shards=3, checksums=sums(files), quiet=True
    )
    assert len(list((out / "training").iterdir())) == 3
    for channel, prefix in (("training", "train"), ("test", "t10k")):
        images, labels = read(out / channel)
        assert images.dtype == np.uint8 and labels.dtype == np.int64
        assert np.array_equal(images[..., 0], arrays[f"{prefix}-images-idx3-ubyte.gz"])
        assert np.array_equal(labels, arrays[f"{prefix}-labels-idx1-ubyte.gz"])


def test_mnist_downloads_once(tmp_path, server, hasty):
    files = mnist_files()
    for name, data in files.items():
        server.answers["/good/" + name] = [serve(data)]
        server.answers["/bad/" + name] = [status(404)]
    settings = {"checksums": sums(files), "policy": hasty, "quiet": True}
    mirrors = (server.url + "bad/", server.url + "good/")
    data_prep.mnist.prepare(tmp_path / "mnist", mirrors=mirrors, **settings)
    assert len(server.requests) == 8
    data_prep.mnist.prepare(tmp_path / "mnist", mirrors=mirrors, shards=2, **settings)
    assert len(server.requests) == 8, "other options must not download again"
    kept = tmp_path / "downloads/mnist/t10k-labels-idx1-ubyte.gz"
    kept.write_bytes(b"damaged")
    data_prep.mnist.prepare(tmp_path / "mnist", mirrors=mirrors, shards=4, **settings)
    assert len(server.requests) == 10, "a damaged copy must be fetched again"


def test_mnist_without_network(tmp_path, hasty, tree):
    with pytest.raises(data_prep.DataError) as error:
        data_prep.mnist.prepare(tmp_path / "mnist", "http://127.0.0.1:9", policy=hasty, quiet=True)
    assert "connection refused" in str(error.value)
    assert "give a folder that holds the four files train-images" in str(error.value)
    assert tree(tmp_path) == []


def test_mnist_folder_lacks_a_file(tmp_path, folder):
    (folder / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(data_prep.DataError, match=r"lacks t10k-labels-idx1-ubyte.gz\. Give a "):
        data_prep.mnist.prepare(tmp_path / "mnist", folder, quiet=True)
    with pytest.raises(data_prep.DataError, match="there is no folder"):
        data_prep.mnist.prepare(tmp_path / "mnist", folder / "nowhere", quiet=True)
    assert not (tmp_path / "mnist").exists()


def test_mnist_folder_with_wrong_bytes(tmp_path, folder):
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"x")
    with pytest.raises(data_prep.DataError, match=r"wrong content.*Replace it by a fresh copy"):
        data_prep.mnist.prepare(
            tmp_path / "mnist", folder, checksums=sums(mnist_files()), quiet=True
        )
    assert not (tmp_path / "mnist").exists()


IMAGES, LABELS = mnist_arrays()["t10k-images-idx3-ubyte.gz"], np.arange(12) % 10
BAD_FILES = {
    "wrong magic": ("images", gzip.compress(idx_images(IMAGES, 0x802)), "not an IDX file"),
    "exchanged": ("images", gzip.compress(idx_labels(LABELS)), "images and labels exchanged"),
    "one byte short": ("images", gzip.compress(idx_images(IMAGES)[:-1]), "header announces"),
    "one byte more": ("images", gzip.compress(idx_images(IMAGES) + b"x"), "header announces"),
    "no header": ("images", gzip.compress(b"\0\0\x08"), "cut short"),
    "cut gzip": ("images", gzip.compress(idx_images(IMAGES))[:-50], "cut short"),
    "no gzip": ("images", b"<html>", "not a sound gzip file"),
    "other size": ("images", gzip.compress(idx_images(IMAGES[:, :27])), "27 x 28 pixels"),
    "fewer labels": ("labels", gzip.compress(idx_labels(LABELS[:-1])), "12 images and .* 11"),
    "label 10": ("labels", gzip.compress(idx_labels(LABELS + 1)), "label 10, expected 0 to 9"),
    "bomb": ("images", gzip.compress(bytes(51_000_000), 1), "unpacks to more than"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_mnist_content_is_validated_beyond_its_checksum(tmp_path, folder, name):
    kind, data, message = BAD_FILES[name]
    target = next(folder.glob(f"t10k-{kind}*"))
    target.write_bytes(data)
    agreed = sums({path.name: path.read_bytes() for path in folder.iterdir()})
    with pytest.raises(data_prep.DataError, match=message):
        data_prep.mnist.prepare(tmp_path / "mnist", folder, checksums=agreed, quiet=True)
    assert not (tmp_path / "mnist").exists()


def test_too_many_shards(tmp_path, folder, tree):
    with pytest.raises(data_prep.DataError, match="cannot split 40 images into 41 files"):
        data_prep.mnist.prepare(
            tmp_path / "out/mnist", folder, shards=41, checksums=sums(mnist_files()), quiet=True
        )
    assert tree(tmp_path / "out") == []


def test_command_line(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, [*map(str, arguments)])

    out = tmp_path / "digits"
    assert "wrote 1437 training images in 4 files, 360 test" in run("digits", "--out", out).output
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
