"""`python -m data_prep` with sources, places and addresses that are not what it needs."""

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, a_file, check

from data_prep.__main__ import main

KINDS = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
MNIST = [f"{kind}-ubyte.gz" for kind in KINDS]
CIFAR, PYTHONS = "cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"


def files(*names: str):
    """A folder with files of these names, which hold something else."""

    def make(here: Path) -> None:
        (here / "from").mkdir()
        for name in names:
            (here / "from" / name).write_bytes(b"x")

    return make


FROM = "--source {here}/from --out {here}/out"
ANOTHER = "--source FOLDER"
UPLOAD = "upload {here} s3://bucket/x"
ROWS = [
    Row(name, command, words, code=1, make=make)
    for name, command, words, make in (
        ("an address without a bucket", "upload {here} s3://", ("s3://BUCKET/PREFIX",), None),
        ("nothing to upload", UPLOAD, ("holds no files", "nothing to"), None),
        ("no folder", "upload {here}/no s3://b/x", ("no folder {here}/no", "digits"), None),
        ("nobody who may upload", UPLOAD, ("no AWS credentials", "AWS_ENDPOINT_URL"), a_file),
        ("below a file", "digits --out {here}/file/x", ("{here}/file/x", "--out FOLDER"), a_file),
        ("no source", f"mnist {FROM}", ("no folder {here}/from", ANOTHER), None),
        ("half of the files", f"mnist {FROM}", ("lacks t10k-images", ANOTHER), files(*MNIST[:2])),
        ("other content", f"mnist {FROM}", ("SHA-256 is", "expected", "fresh copy"), files(*MNIST)),
        ("another archive", f"cifar10 {FROM}", ("damaged", "SHA-256", "fresh"), files(CIFAR)),
        ("Python's version", f"cifar10 {FROM}", (f"lacks {CIFAR}", ANOTHER), files(PYTHONS)),
    )
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_data_that_is_refused(row, tmp_path):
    check(row, main, tmp_path)
