"""`python -m data_prep` with sources, places and addresses that are not what it needs."""

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, check

from data_prep.__main__ import main

MNIST = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
CIFAR = "cifar-10-binary.tar.gz"


def mnist(raw: bytes):
    """A folder with MNIST's four names, and this in each."""

    def make(here: Path) -> None:
        (here / "from").mkdir()
        for name in MNIST:
            (here / "from" / f"{name}-ubyte.gz").write_bytes(raw)

    return make


def archive(raw: bytes):
    """A folder with a file that has the name of CIFAR-10's archive."""

    def make(here: Path) -> None:
        (here / "from").mkdir()
        (here / "from" / CIFAR).write_bytes(raw)

    return make


def pythons_version(here: Path) -> None:
    (here / "from").mkdir()
    (here / "from" / "cifar-10-python.tar.gz").write_bytes(b"")


def a_file(here: Path) -> None:
    (here / "file").write_text("a file")


def two_of_four(here: Path) -> None:
    mnist(b"x")(here)
    for name in MNIST[2:]:
        (here / "from" / f"{name}-ubyte.gz").unlink()


FROM = "--source {here}/from --out {here}/out"
ANOTHER = "--source FOLDER"
USE = [
    Row("an address without a bucket", "upload {here} s3://", ("s3://BUCKET/PREFIX",), 1),
    Row("nothing to upload", "upload {here} s3://bucket/x", ("holds no files", "nothing to"), 1),
    Row("no folder to upload", "upload {here}/no s3://b/x", ("no folder {here}/no", "digits"), 1),
    Row(
        "nobody who may upload",
        "upload {here} s3://bucket/x",
        ("no AWS credentials", "AWS_ENDPOINT_URL"),
        code=1,
        make=a_file,
    ),
]
FAILS = [
    Row(name, command, words, code=1, make=make)
    for name, command, words, make in (
        ("below a file", "digits --out {here}/file/x", ("{here}/file/x", "--out FOLDER"), a_file),
        ("no such folder", f"mnist {FROM}", ("no folder {here}/from", ANOTHER), None),
        ("half of the files", f"mnist {FROM}", ("lacks t10k-images", ANOTHER), two_of_four),
        ("other content", f"mnist {FROM}", ("SHA-256 is", "expected", "fresh copy"), mnist(b"x")),
        ("another archive", f"cifar10 {FROM}", ("damaged", "SHA-256", "fresh"), archive(b"x")),
        ("Python's version", f"cifar10 {FROM}", (f"lacks {CIFAR}", ANOTHER), pythons_version),
    )
]


@pytest.mark.parametrize("row", [*USE, *FAILS], ids=lambda row: row.name.replace(" ", "-"))
def test_data_that_is_refused(row, tmp_path):
    check(row, main, tmp_path)
