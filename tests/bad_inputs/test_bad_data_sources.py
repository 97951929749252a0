"""`python -m data_prep` with sources, places and addresses that are not what it needs."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from bad_inputs_helpers import Preloaded, Row, check

MNIST = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
CIFAR = "cifar-10-binary.tar.gz"


def mnist(raw: bytes):
    """A folder with MNIST's four names, and this in each."""

    def make(here: Path) -> None:
        (here / "from").mkdir()
        for name in MNIST:
            (here / "from" / f"{name}-ubyte.gz").write_bytes(raw)

    return make


def archive(*members: tuple[tarfile.TarInfo, bytes]):
    """A folder with an archive that has CIFAR-10's name."""

    def make(here: Path) -> None:
        (here / "from").mkdir()
        with tarfile.open(here / "from" / CIFAR, "w:gz") as tar:
            for member, raw in members:
                member.size = len(raw)
                tar.addfile(member, io.BytesIO(raw))

    return make


def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def bomb(here: Path) -> None:
    """A quarter of a megabyte that unpacks to 256 megabytes."""
    (here / "from").mkdir()
    with gzip.open(here / "from" / CIFAR, "wb", compresslevel=9) as stream:
        member = named("filler")
        member.size = 256 << 20
        stream.write(member.tobuf())
        for _ in range(256):
            stream.write(bytes(1 << 20))


def cut_off(here: Path) -> None:
    archive((named("data_batch_1.bin"), bytes(range(256)) * 400))(here)
    path = here / "from" / CIFAR
    path.write_bytes(path.read_bytes()[:-20])


def pythons_version(here: Path) -> None:
    (here / "from").mkdir()
    (here / "from" / "cifar-10-python.tar.gz").write_bytes(b"")


def unpacked(here: Path) -> None:
    (here / "from").mkdir()
    for name in (*(f"data_batch_{n}.bin" for n in range(1, 6)), "test_batch.bin"):
        (here / "from" / name).write_bytes(bytes(3073))


def somebodys_folder(here: Path) -> None:
    (here / "data").mkdir()
    (here / "data" / "thesis.txt").write_text("years of work")


def a_file(here: Path) -> None:
    (here / "file").write_text("a file")


def two_of_four(here: Path) -> None:
    mnist(b"x")(here)
    for name in MNIST[2:]:
        (here / "from" / f"{name}-ubyte.gz").unlink()


FROM = "--source {here}/from --out {here}/out"
ANOTHER = "--source FOLDER"
USE = [
    Row("no such data set", "imagenet", ("No such command 'imagenet'", "--help")),
    Row("no files at all", "digits --shards 0 --out {here}/out", ("--shards", "x>=1")),
    Row("an address of no bucket", "upload {here} https://example.com/x", ("s3://BUCKET",), 1),
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
    Row(what, command, words, code=1, make=make)
    for what, command, words, make in (
        (
            "more files than images",
            "digits --shards 2000 --out {here}/out",
            ("2000 files", "expected 1 to 1437 files"),
            None,
        ),
        (
            "somebody else's folder",
            "digits --out {here}/data",
            ("{here}/data is in the way", "Move those files away", "--out FOLDER"),
            somebodys_folder,
        ),
        ("below a file", "digits --out {here}/file/x", ("{here}/file/x", "--out FOLDER"), a_file),
        ("no such folder", f"mnist {FROM}", ("no folder {here}/from", ANOTHER), None),
        ("half of the files", f"mnist {FROM}", ("lacks t10k-images", ANOTHER), two_of_four),
        ("other content", f"mnist {FROM}", ("SHA-256 is", "expected", "fresh copy"), mnist(b"x")),
        ("empty files", f"mnist {FROM}", ("SHA-256 is", "(0 bytes)", "fresh copy"), mnist(b"")),
        ("an archive cut off", f"cifar10 {FROM}", ("damaged or cut short", "fresh"), cut_off),
        ("no archive", f"cifar10 {FROM}", (f"lacks {CIFAR}", ANOTHER), mnist(b"x")),
        (
            "an archive that climbs",
            f"cifar10 {FROM}",
            ("lacks data_batch_1.bin", "fresh copy"),
            archive((named("../../precious.txt"), b"gone"), (named("/tmp/x"), b"")),
        ),
        (
            "an archive of links and devices",
            f"cifar10 {FROM}",
            ("lacks data_batch_1.bin",),
            archive(
                (named("data_batch_1.bin", tarfile.SYMTYPE, "/etc/passwd"), b""),
                (named("data_batch_2.bin", tarfile.LNKTYPE, "../../precious.txt"), b""),
                (named("test_batch.bin", tarfile.CHRTYPE), b""),
            ),
        ),
        (
            "a file twice",
            f"cifar10 {FROM}",
            ("holds data_batch_1.bin twice",),
            archive(*[(named("data_batch_1.bin"), b"x")] * 2),
        ),
        ("a bomb", f"cifar10 {FROM}", ("unpacks to more than 200,000,000 bytes",), bomb),
        ("Python's version", f"cifar10 {FROM}", ("Python version", "binary"), pythons_version),
        ("files of other content", f"cifar10 {FROM}", ("wrong content", "SHA-256"), unpacked),
    )
]


@pytest.fixture(scope="module")
def preloaded():
    one = Preloaded("click", "sklearn.datasets", "boto3", "requests", "tqdm")
    yield one
    one.close()


@pytest.mark.parametrize("row", [*USE, *FAILS], ids=lambda row: row.what.replace(" ", "-"))
def test_data_that_is_refused(row, preloaded, tmp_path):
    check(row, lambda argv, *where: preloaded.run(["-m", "data_prep", *argv], *where), tmp_path)
