"""`python -m data_prep` with sources, places and addresses that are not what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, check, rows

from data_prep.__main__ import main

MNIST = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")


def files(here: Path, *names: str) -> None:
    """A folder with files of these names, none of which holds what it should."""
    (here / "from").mkdir()
    for name in names:
        (here / "from" / name).write_bytes(b"x")


def a_file(here: Path) -> None:
    (here / "file").write_text("a file")


def all_four(here: Path) -> None:
    files(here, *(f"{name}-ubyte.gz" for name in MNIST))


def two_of_four(here: Path) -> None:
    files(here, *(f"{name}-ubyte.gz" for name in MNIST[:2]))


def an_archive(here: Path) -> None:
    files(here, "cifar-10-binary.tar.gz")


def pythons_version(here: Path) -> None:
    files(here, "cifar-10-python.tar.gz")


MAKERS = (a_file, all_four, two_of_four, an_archive, pythons_version)
ROWS = rows(Path(__file__).with_name("bad_data_sources.toml"), *MAKERS, code=1)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_data_that_is_refused(row: Row, tmp_path):
    check(row, main, tmp_path)
