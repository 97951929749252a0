"""Wrong words after `workshop`: refused at the door, in plain words."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_inputs_helpers import Row, check, rows

from workshop.cli import main


def a_file(here: Path) -> None:
    (here / "file").write_text("a file")


def an_empty_folder(here: Path) -> None:
    (here / "empty").mkdir()


ROWS = rows(Path(__file__).with_name("bad_command_lines.toml"), a_file, an_empty_folder)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_a_command_line_that_is_refused(row: Row, tmp_path):
    check(row, main, tmp_path)
