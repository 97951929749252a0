"""CIFAR-10: pixels in their places, and archives that mean harm."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tarfile

import numpy as np
import pytest
from data_prep_helpers import cifar_files, cifar_pictures, cifar_record, serve, sums, tar_gz

import data_prep
from data_prep import cifar_binary

ARCHIVE = "cifar-10-binary.tar.gz"


def all_sums(files, archive=b""):
    return {**sums(files), **sums({ARCHIVE: archive})}


def looks_right(image):
    """The picture that cifar_pictures draws: red top half, blue left column."""
    return (
        (image[:16, :, 0] == 255).all()
        and (image[16:, :, 0] == 0).all()
        and (image[:, 0, 2] == 200).all()
        and (image[:, 1:, 2] == 0).all()
    )


def read_channel(channel):
    """Read a channel back with TensorFlow, as a training script does."""
    import tensorflow as tf

    features = {
        "image": tf.io.FixedLenFeature([], tf.string),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    images, labels = [], []
    paths = [str(path) for path in sorted(channel.iterdir())]
    for record in tf.data.TFRecordDataset(paths):
        example = tf.io.parse_single_example(record, features)
        pixels = tf.io.decode_raw(example["image"], tf.uint8)
        images.append(tf.reshape(pixels, (32, 32, 3)).numpy())
        labels.append(int(example["label"]))
    return np.stack(images), labels


@pytest.fixture(scope="module")
def files():
    return cifar_files(per_file=20)


@pytest.fixture(scope="module")
def prepared(files, tmp_path_factory):
    place = tmp_path_factory.mktemp("cifar10")
    archive = tar_gz(files)
    (place / ARCHIVE).write_bytes(archive)
    return data_prep.cifar10.prepare(
        place / "out",
        place,
        shards=3,
        validation_images=10,
        checksums=all_sums(files, archive),
        quiet=True,
    )


def test_every_pixel_is_in_its_place(prepared):
    """Bytes drawn plane by plane come back from TensorFlow as the pictures that were drawn."""
    found = []
    for channel, count in (("train", 90), ("validation", 10), ("test", 20)):
        images, labels = read_channel(prepared / channel)
        assert len(images) == len(labels) == count
        assert all(looks_right(image) for image in images)
        found.append({(i.tobytes(), n) for i, n in zip(images, labels, strict=True)})
    drawn = set()
    for batch in range(6):
        images, labels = cifar_pictures(20, seed=20 * batch)
        drawn |= {(i.tobytes(), int(n)) for i, n in zip(images, labels, strict=True)}
        if batch == 4:
            assert found[0] | found[1] == drawn, "train and validation come from the five batches"
            assert not found[0] & found[1], "no picture is in both"
    assert found[2] == drawn - found[0] - found[1]


def test_the_naive_reshape_would_fail_this_test():
    """The classic mistake keeps every byte and scrambles the picture; `looks_right` sees it."""
    images, _ = cifar_pictures(1)
    record = cifar_record(images[0], 3)
    naive = np.frombuffer(record[1:], np.uint8).reshape(32, 32, 3)
    assert sorted(naive.ravel()) == sorted(images[0].ravel())
    assert not looks_right(naive)
    right, labels = cifar_binary.decode(record, "one")
    assert looks_right(right[0]) and np.array_equal(right, images) and labels.tolist() == [3]


def test_without_tensorflow(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    archive = tar_gz(files)
    (tmp_path / ARCHIVE).write_bytes(archive)
    with pytest.raises(data_prep.DataError, match="needs TensorFlow"):
        data_prep.cifar10.prepare(
            tmp_path / "out",
            tmp_path,
            validation_images=10,
            checksums=all_sums(files, archive),
            quiet=True,
        )
    assert not (tmp_path / "out").exists()
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ, "jobs of the same notebook would inherit it"


def test_channels_and_files(prepared):
    names = {c.name: sorted(p.name for p in c.iterdir()) for c in prepared.iterdir() if c.is_dir()}
    assert names == {
        "train": ["part-00000.tfrecord", "part-00001.tfrecord", "part-00002.tfrecord"],
        "validation": ["part-00000.tfrecord"],
        "test": ["part-00000.tfrecord"],
    }


def test_a_repacked_archive_counts_when_its_files_are_right(files, server, tmp_path, hasty):
    """Some mirrors hold the same six files in another archive."""
    right = tar_gz({"._data_batch_1.bin": b"litter", **files}, folder="elsewhere/")
    wrong = tar_gz({**files, "test_batch.bin": files["data_batch_1.bin"]})
    server.answers["/wrong/" + ARCHIVE] = [serve(wrong)]
    server.answers["/page/" + ARCHIVE] = [serve(b"<html>")]
    server.answers["/right/" + ARCHIVE] = [serve(right)]
    settings = {
        "checksums": all_sums(files),
        "validation_images": 10,
        "policy": hasty,
        "quiet": True,
    }
    mirrors = tuple(server.url + path for path in ("wrong/", "page/", "right/"))
    data_prep.cifar10.prepare(tmp_path / "out", mirrors=mirrors, **settings)
    assert len(server.requests) == 3
    with pytest.raises(data_prep.DataError) as error:
        data_prep.cifar10.prepare(
            tmp_path / "no", mirrors=mirrors[:2], cache=tmp_path / "c", **settings
        )
    assert "test_batch.bin has SHA-256" in str(error.value)
    assert "damaged or cut short" in str(error.value)
    assert "--source FOLDER" in str(error.value)
    assert not (tmp_path / "no").exists() and not (tmp_path / "c").exists()


@pytest.mark.parametrize("inner", ["", "cifar-10-batches-bin"])
def test_unpacked_files(files, tmp_path, inner):
    folder = tmp_path / "source" / inner
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    settings = {"checksums": all_sums(files), "validation_images": 10, "quiet": True}
    source = tmp_path / "source"
    out = data_prep.cifar10.prepare(tmp_path / "out", source, **settings)
    assert len(list((out / "train").iterdir())) == 8
    (folder / "data_batch_3.bin").write_bytes(b"x" * 3073)
    with pytest.raises(data_prep.DataError, match=r"data_batch_3.bin has SHA-256.*--source"):
        data_prep.cifar10.prepare(tmp_path / "out2", source, **settings)
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(data_prep.DataError, match=r"lacks data_batch_3.bin.*--source FOLDER"):
        data_prep.cifar10.prepare(tmp_path / "out2", source, **settings)


def test_folder_without_the_archive(tmp_path):
    with pytest.raises(data_prep.DataError, match=r"lacks cifar-10-binary.*--source FOLDER"):
        data_prep.cifar10.prepare(tmp_path / "out", tmp_path, quiet=True)
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"")
    with pytest.raises(data_prep.DataError, match=r"the Python version.*--source FOLDER"):
        data_prep.cifar10.prepare(tmp_path / "out", tmp_path, quiet=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "expected a multiple"),
        (bytes(3072), "expected a multiple"),
        (bytes([10]) + bytes(3072), "label 10"),
    ],
)
def test_impossible_records(data, message):
    with pytest.raises(data_prep.DataError, match=message):
        cifar_binary.decode(data, "data_batch_1.bin")


def hostile(files, add):
    """An archive that begins with one hostile member."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        add(archive)
        for name, data in files.items():
            member = tarfile.TarInfo("cifar-10-batches-bin/" + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def file_member(name, data):
    def add(archive):
        member = tarfile.TarInfo(name)
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))

    return add


def link_member(name, target, kind):
    def add(archive):
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        archive.addfile(member)

    return add


@pytest.mark.parametrize(
    "add",
    [
        file_member("../../evil", b"evil"),
        file_member("/tmp/data_prep_evil", b"evil"),
        link_member("cifar-10-batches-bin", "/", tarfile.SYMTYPE),
        link_member("x/test_batch.bin", "/etc/passwd", tarfile.SYMTYPE),
        link_member("x/test_batch.bin", "/etc/passwd", tarfile.LNKTYPE),
        link_member("x/test_batch.bin", "", tarfile.FIFOTYPE),
    ],
)
def test_hostile_members_are_passed_over(files, tmp_path, tree, add):
    place = tmp_path / "deep/er"
    place.mkdir(parents=True)
    (place / ARCHIVE).write_bytes(hostile(files, add))
    assert cifar_binary.read_archive(place / ARCHIVE) == files
    assert tree(tmp_path) == ["deep", "deep/er", f"deep/er/{ARCHIVE}"]


def test_bombs_and_damage(files, tmp_path, monkeypatch):
    def reading(data):
        (tmp_path / ARCHIVE).write_bytes(data)
        return cifar_binary.read_archive(tmp_path / ARCHIVE)

    good = tar_gz(files)
    with pytest.raises(data_prep.DataError, match="twice"):
        reading(hostile(files, file_member("x/test_batch.bin", b"y")))
    for damaged in (
        good[: len(good) // 2],
        good[:-8],
        b"",
        b"no archive",
        gzip.compress(b"x" * 99),
    ):
        with pytest.raises(data_prep.DataError, match=r"damaged or cut short|lacks data_batch_1"):
            reading(damaged)
    with pytest.raises(data_prep.DataError, match=r"lacks test_batch\.bin$"):
        reading(tar_gz({name: data for name, data in files.items() if "test" not in name}))
    monkeypatch.setattr(cifar_binary, "MAX_UNPACKED", 1_000_000)
    with pytest.raises(data_prep.DataError, match="unpacks to more than 1,000,000"):
        reading(hostile(files, file_member("bomb", bytes(2_000_000))))
    monkeypatch.setattr(cifar_binary, "MAX_FILE_BYTES", len(files["test_batch.bin"]) - 1)
    with pytest.raises(data_prep.DataError, match="in the archive has"):
        reading(good)


def test_validation_larger_than_the_data(files, tmp_path):
    (tmp_path / ARCHIVE).write_bytes(tar_gz(files))
    with pytest.raises(data_prep.DataError, match="cannot put 100 of 100"):
        data_prep.cifar10.prepare(
            tmp_path / "out",
            tmp_path,
            validation_images=100,
            checksums=all_sums(files),
            quiet=True,
        )
