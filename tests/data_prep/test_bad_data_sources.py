"""`python -m data_prep` with sources and places that are not what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, check

from data_prep.__main__ import main

CIFAR = "cifar-10-binary.tar.gz"


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


FROM = "--source {here}/from --out {here}/out"
ANOTHER = "--source FOLDER"
FAILS = [
    Row(name, command, words, code=1, make=make)
    for name, command, words, make in (
        ("below a file", "digits --out {here}/file/x", ("{here}/file/x", "--out FOLDER"), a_file),
        ("no such folder", f"cifar10 {FROM}", ("no folder {here}/from", ANOTHER), None),
        ("another archive", f"cifar10 {FROM}", ("damaged", "SHA-256", "fresh"), archive(b"x")),
        ("Python's version", f"cifar10 {FROM}", (f"lacks {CIFAR}", ANOTHER), pythons_version),
    )
]


@pytest.mark.parametrize("row", FAILS, ids=lambda row: row.name.replace(" ", "-"))
def test_data_that_is_refused(row, tmp_path):
    check(row, main, tmp_path)
