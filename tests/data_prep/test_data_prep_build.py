"""The manifest and the atomic directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from data_prep import atomic, manifest
from data_prep.build import build, shard_counts
from data_prep.errors import DataError

RECIPE = {"dataset": "test", "version": 1}


def write_two(directory):
    (directory / "training").mkdir()
    (directory / "training/a").write_text("one")
    (directory / "training/b").write_text("two")
    return "wrote 2 files"


def never(directory):
    raise AssertionError("must not be made again")


@pytest.fixture
def made(tmp_path):
    return build(tmp_path / "out", RECIPE, write_two, quiet=True)


def test_second_run_does_nothing(made, capsys):
    build(made, RECIPE, never)
    assert "up to date" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda out: (out / "training/a").write_text("ONE"), "a is not what was written"),
        (lambda out: (out / "training/a").write_text("longer"), "a is not what was written"),
        (lambda out: (out / "training/b").unlink(), "missing: training/b"),
    ],
)
def test_damage_is_noticed_and_mended(made, capsys, damage, reason):
    damage(made)
    build(made, RECIPE, write_two)
    assert reason in capsys.readouterr().out
    assert (made / "training/a").read_text() == "one"
    assert (made / "training/b").read_text() == "two"
    build(made, RECIPE, never)


def test_other_options_make_it_again(made):
    build(made, {**RECIPE, "version": 2}, write_two, quiet=True)
    assert manifest.inspect(made, {**RECIPE, "version": 2})[0] == manifest.CURRENT


def test_files_of_others_are_never_replaced(made, tmp_path):
    (made / "training/notes.txt").write_text("mine")
    (made / "training/a").write_text("damaged")
    with pytest.raises(DataError, match=r"also holds training/notes.txt.*--out FOLDER"):
        build(made, RECIPE, never, quiet=True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match="in the way"):
        build(foreign, RECIPE, never, quiet=True)
    assert (foreign / "thesis.tex").read_text() == "mine"
    with pytest.raises(DataError, match="it is a file"):
        build(foreign / "thesis.tex", RECIPE, never, quiet=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"a": {}}}', '{"files": 3}'])
def test_an_unreadable_manifest_protects_the_directory(made, text):
    (made / "manifest.json").write_text(text)
    assert manifest.inspect(made, RECIPE)[0] == manifest.FOREIGN


def test_what_jupyter_leaves_behind_does_no_harm(made):
    (made / "training/.ipynb_checkpoints").mkdir()
    (made / "training/.ipynb_checkpoints/a").write_text("one")
    assert manifest.inspect(made, RECIPE)[0] == manifest.CURRENT


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_failure_leaves_the_older_directory(made, tmp_path, tree, error):
    before = tree(tmp_path)

    def fail(directory):
        (directory / "half").write_text("half")
        raise error

    with pytest.raises(error):
        build(made, {**RECIPE, "version": 2}, fail, quiet=True)
    assert tree(tmp_path) == before
    assert manifest.inspect(made, RECIPE)[0] == manifest.CURRENT


def test_a_failed_move_brings_the_older_directory_back(made, tmp_path, tree, monkeypatch):
    before = tree(tmp_path)
    rename = Path.rename

    def refuse(self, target):
        if "building" in self.name:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(DataError, match=r"No space left on device.*enough free space"):
        build(made, {**RECIPE, "version": 2}, write_two, quiet=True)
    assert tree(tmp_path) == before


def test_a_killed_run_is_swept_up_and_a_running_one_is_not(tmp_path, tree):
    code = (
        "import sys, time; from pathlib import Path; from data_prep.atomic import building\n"
        "with building(Path(sys.argv[1])) as d:\n"
        "    (d / 'half').write_text('half'); print('ready', flush=True); time.sleep(600)\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "out")],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )
    try:
        assert other.stdout.readline() == b"ready\n"
        build(tmp_path / "out", RECIPE, write_two, quiet=True)
        assert [name for name in tree(tmp_path) if name.endswith("half")], "swept a running one"
    finally:
        other.kill()
        other.communicate()
    build(tmp_path / "out", {**RECIPE, "version": 2}, write_two, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_unwritable_place(tmp_path):
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(DataError, match=r"could not write .*Choose a place .*--out FOLDER"):
        build(tmp_path / "file/out", RECIPE, write_two, quiet=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_write_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="Permission denied"):
            build(tmp_path / "out", RECIPE, write_two, quiet=True)
    finally:
        tmp_path.chmod(0o700)


def test_the_result_has_ordinary_permissions(made):
    umask = os.umask(0)
    os.umask(umask)
    assert made.stat().st_mode & 0o777 == 0o777 & ~umask


def test_relative_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with atomic.building(Path("a/b")) as directory:
        (directory / "x").write_text("x")
    assert Path("a/b/x").read_text() == "x"


def test_shard_counts():
    assert shard_counts(1437, 4) == [360, 359, 359, 359]
    assert shard_counts(3, 3) == [1, 1, 1]
    for shards in (0, 4):
        with pytest.raises(DataError, match="expected 1 to 3 files"):
            shard_counts(3, shards)
