"""CIFAR-10: pixels in their places, from an archive, from unpacked files, from a mirror."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest
from data_prep_helpers import cifar_files, cifar_pictures, cifar_record, serve, sums, tar_gz

import data_prep
from data_prep import cifar10

FILES = cifar_files(per_file=20)
ARCHIVE = tar_gz(FILES)


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


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A folder with the archive, a small one."""
    monkeypatch.setattr(cifar10, "SHA256", sums({cifar10.ARCHIVE: ARCHIVE, **FILES}))
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / cifar10.ARCHIVE).write_bytes(ARCHIVE)
    return folder


def prepare(out, source, **options):
    options = {"shards": 3, "validation_images": 10, "quiet": True} | options
    return cifar10.prepare(out, source, **options)


@pytest.fixture
def prepared(source, tmp_path):
    return prepare(tmp_path / "out", source)


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
    right, labels = cifar10.decode(record)
    assert looks_right(right[0]) and np.array_equal(right, images) and labels.tolist() == [3]


def test_without_tensorflow(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with pytest.raises(data_prep.DataError, match="needs TensorFlow"):
        prepare(tmp_path / "out", source)
    assert not (tmp_path / "out").exists()
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ, "jobs of the same notebook would inherit it"


def test_channels_and_files(prepared):
    names = {c.name: sorted(p.name for p in c.iterdir()) for c in prepared.iterdir() if c.is_dir()}
    assert names == {
        "train": ["part-00000.tfrecord", "part-00001.tfrecord", "part-00002.tfrecord"],
        "validation": ["part-00000.tfrecord"],
        "test": ["part-00000.tfrecord"],
    }


def test_the_archive_is_downloaded(source, server, tmp_path, monkeypatch, prepared):
    server.answers["/x/" + cifar10.ARCHIVE] = [serve(ARCHIVE)]
    monkeypatch.setattr(cifar10, "MIRRORS", (server.url + "x/",))
    out = prepare(tmp_path / "downloaded", None)
    assert (out / "manifest.json").read_text() == (prepared / "manifest.json").read_text()


@pytest.mark.parametrize("inner", ["", "cifar-10-batches-bin"])
def test_unpacked_files(source, tmp_path, prepared, inner):
    folder = tmp_path / "unpacked" / inner
    folder.mkdir(parents=True)
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    out = prepare(tmp_path / "again", tmp_path / "unpacked")
    assert (out / "manifest.json").read_text() == (prepared / "manifest.json").read_text()
    (folder / "data_batch_3.bin").write_bytes(b"x" * 3073)
    with pytest.raises(data_prep.DataError, match=r"data_batch_3.bin is damaged .*--source"):
        prepare(tmp_path / "out2", tmp_path / "unpacked")
    (folder / "data_batch_3.bin").unlink()
    with pytest.raises(data_prep.DataError, match=r"lacks cifar-10-binary.*--source FOLDER"):
        prepare(tmp_path / "out2", tmp_path / "unpacked")
    assert not (tmp_path / "out2").exists()


def test_another_archive_is_refused_unopened(source, tmp_path):
    (source / cifar10.ARCHIVE).write_bytes(tar_gz({**FILES, "../../evil": b"evil"}))
    with pytest.raises(data_prep.DataError, match="is damaged or another file"):
        prepare(tmp_path / "out", source)


def test_validation_larger_than_the_data(source, tmp_path):
    with pytest.raises(data_prep.DataError, match="cannot put 100 of 100"):
        prepare(tmp_path / "out", source, validation_images=100)


def test_the_sample_has_cifar10s_form_and_is_cut_from_the_photographs():
    from sklearn.datasets import load_sample_images

    images, labels = cifar10.decode(cifar10.sample_bytes())
    assert images.shape == (2750, 32, 32, 3) and set(labels) == set(range(10))
    (china, flower) = load_sample_images().images
    for picture, label in zip(images[:20], labels[:20], strict=True):
        photograph = china if label < 5 else flower
        columns = [
            left
            for top in range(0, photograph.shape[0] - 31, cifar10.SAMPLE_STRIDE)
            for left in range(0, photograph.shape[1] - 31, cifar10.SAMPLE_STRIDE)
            if (photograph[top : top + 32, left : left + 32] == picture).all()
        ]
        assert label % 5 in {5 * left // photograph.shape[1] for left in columns}


def test_the_sample_is_written_as_cifar10_is(tmp_path):
    folder = data_prep.cifar10.prepare_sample(tmp_path / "sample", quiet=True)
    counts = {name: len(read_channel(folder / name)[1]) for name in cifar10.SAMPLE_COUNTS}
    assert counts == {"train": 2000, "validation": 250, "test": 500}
    images, _ = read_channel(folder / "test")
    expected, _ = cifar10.decode(cifar10.sample_bytes())
    np.testing.assert_array_equal(np.array(images)[0], expected[2250])
