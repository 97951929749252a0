"""The data sets: every picture in its place, from where they come, what is refused."""

import hashlib
import os
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from data_prep_helpers import (
    cifar_files,
    cifar_pictures,
    mnist_arrays,
    mnist_files,
    serve,
    sums,
    tar_gz,
)

import data_prep
from data_prep import cifar10, mnist
from data_prep.__main__ import main

# Pixels and labels of the test channel, not the .npz files: zlib versions pack differently.
DIGITS_TEST_SHA256 = "e1a44657b636c913aa4033e86b81825e0f5e13d9e4bfdd7eebf1d1029f30d24d"
CIFAR = tar_gz(cifar_files(per_file=20))


def read(channel):
    parts = [np.load(path) for path in sorted(channel.glob("part-*.npz"))]
    return (
        np.concatenate([part["images"] for part in parts]),
        np.concatenate([part["labels"] for part in parts]),
    )


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    return data_prep.digits.prepare(tmp_path_factory.mktemp("data") / "digits", quiet=True)


def test_digits_are_all_there_and_belong_to_their_labels(digits):
    assert len(list((digits / "training").iterdir())) == 4
    assert [path.name for path in (digits / "test").iterdir()] == ["part-00000.npz"]
    made = []
    for channel, count in (("training", 1437), ("test", 360)):
        images, labels = read(digits / channel)
        assert images.shape == (count, 8, 8, 1) and images.dtype == np.uint8
        assert labels.shape == (count,) and labels.dtype == np.int64
        made += [(image.tobytes(), int(label)) for image, label in zip(images, labels, strict=True)]
    from sklearn.datasets import load_digits

    raw = load_digits()
    scaled = [[[int(v) * 255 // 16 for v in row] for row in image] for image in raw.images]
    true = [(np.uint8(i).tobytes(), int(t)) for i, t in zip(scaled, raw.target, strict=True)]
    assert sorted(made) == sorted(true)
    assert made != true, "not shuffled"


def test_digits_of_28_pixels_are_the_same_digits_resampled(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["digits", "--size", "28"], standalone_mode=False)
    (small, labels), (large, same) = data_prep.digits.load(), read(tmp_path / "data/digits-28/test")
    assert large.shape == (360, 28, 28, 1) and large.dtype == np.uint8
    assert (same == labels[-360:]).all()
    # A mean of 3.5 x 3.5 pixels is one of the 8 x 8 again, but for what interpolation smooths.
    means = large.reshape(360, 4, 7, 4, 7, 1).mean(axis=(2, 4)).ravel()
    originals = small[-360:].reshape(360, 4, 2, 4, 2, 1).mean(axis=(2, 4)).ravel()
    assert np.corrcoef(means, originals)[0, 1] > 0.99
    result = CliRunner().invoke(main, ["digits", "--out", "data/digits-28"])
    assert result.exit_code == 1 and "28 x 28 pixels, not 8 x 8" in result.output


def test_digits_are_the_same_each_time_and_always_were(digits, tmp_path):
    """Lessons quote accuracies: the same picture must stay in the same file."""
    again = data_prep.digits.prepare(tmp_path / "again", quiet=True)
    for path in digits.rglob("*.npz"):
        assert path.read_bytes() == (again / path.relative_to(digits)).read_bytes()
    images, labels = read(digits / "test")
    assert hashlib.sha256(images.tobytes() + labels.tobytes()).hexdigest() == DIGITS_TEST_SHA256


def check_mnist(out):
    arrays = mnist_arrays()
    assert len(list((out / "training").iterdir())) == 8
    for channel, prefix in (("training", "train"), ("test", "t10k")):
        images, labels = read(out / channel)
        assert images.dtype == np.uint8 and labels.dtype == np.int64
        assert np.array_equal(images[..., 0], arrays[f"{prefix}-images-idx3-ubyte.gz"])
        assert np.array_equal(labels, arrays[f"{prefix}-labels-idx1-ubyte.gz"])


def test_mnist_downloads_once(tmp_path, server, monkeypatch):
    files = mnist_files()
    monkeypatch.setattr(mnist, "SHA256", sums(files))
    for name, data in files.items():
        server.answers["/good/" + name] = [serve(data)]
    monkeypatch.setattr(mnist, "MIRRORS", (server.url + "good/",))
    check_mnist(data_prep.mnist.prepare(tmp_path / "mnist", quiet=True))
    check_mnist(data_prep.mnist.prepare(tmp_path / "again", quiet=True))
    assert len(server.requests) == 4, "another folder must not download again"
    assert len(list((tmp_path / "downloads/mnist").iterdir())) == 4


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
    """A folder with CIFAR-10's archive, a small one."""
    monkeypatch.setattr(cifar10, "SHA256", sums({cifar10.ARCHIVE: CIFAR}))
    monkeypatch.setattr(cifar10, "VALIDATION_IMAGES", 10)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / cifar10.ARCHIVE).write_bytes(CIFAR)
    return tmp_path / "source"


def test_every_pixel_is_in_its_place(source, tmp_path):
    """Bytes drawn plane by plane come back from TensorFlow as the pictures that were drawn."""
    prepared = cifar10.prepare(tmp_path / "out", source, quiet=True)
    assert len(list((prepared / "train").iterdir())) == 8
    pictures = []
    for channel, count in (("train", 90), ("validation", 10), ("test", 20)):
        images, labels = read_channel(prepared / channel)
        assert len(images) == len(labels) == count
        assert all(looks_right(image) for image in images)
        pictures.append({(i.tobytes(), n) for i, n in zip(images, labels, strict=True)})
    drawn = set()
    for batch in range(6):
        images, labels = cifar_pictures(20, seed=20 * batch)
        drawn |= {(i.tobytes(), int(n)) for i, n in zip(images, labels, strict=True)}
        if batch == 4:
            assert pictures[0] | pictures[1] == drawn, "both come from the five batches"
            assert not pictures[0] & pictures[1], "no picture is in both"
    assert pictures[2] == drawn - pictures[0] - pictures[1]


def test_without_tensorflow(source, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with pytest.raises(data_prep.DataError, match="needs TensorFlow"):
        cifar10.prepare(tmp_path / "out", source, quiet=True)
    assert not (tmp_path / "out").exists()
    assert "TF_CPP_MIN_LOG_LEVEL" not in os.environ, "jobs of the same notebook would inherit it"


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


def test_command_line(tmp_path):
    def run(*arguments):
        return CliRunner().invoke(main, [*map(str, arguments)])

    out = tmp_path / "digits"
    output = run("digits", "--out", out).output
    assert "wrote 1437 training, 360 test images" in output
    again = run("digits", "--out", out)
    assert again.exit_code == 0 and "is there already" in again.output
    assert run("digits", "--out", out, "--quiet").output == ""
    for command in ((), ("digits",), ("mnist",), ("cifar10",), ("upload",)):
        shown = run(*command, "--help")
        assert shown.exit_code == 0 and "Usage:" in shown.output
