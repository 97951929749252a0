"""A prepared folder: whole or not at all, up to date or made again, never someone else's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_prep import build as module
from data_prep.build import build, shard_counts
from data_prep.errors import DataError

RECIPE = {"dataset": "test", "version": 1, "shards": 2}
OTHER = {**RECIPE, "version": 2}
FILES = ["manifest.json", "test/part-00000.npz", "training/part-00000.npz"]
FILES += ["training/part-00001.npz"]


def load():
    images = np.arange(5 * 4, dtype=np.uint8).reshape(5, 2, 2, 1)
    return {"training": (images[:3], np.arange(3)), "test": (images[3:], np.arange(2))}


def never():
    raise AssertionError("must not be made again")


def names(folder):
    return [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]


@pytest.fixture
def made(tmp_path):
    return build(tmp_path / "out", RECIPE, load, quiet=True)


def test_files_and_second_run(made, tmp_path, capsys):
    assert names(tmp_path) == [f"out/{name}" for name in FILES]
    with np.load(made / "training/part-00001.npz") as part:
        assert part["images"].tolist() == [[[[8], [9]], [[10], [11]]]]
        assert part["labels"].tolist() == [2]
    build(made, RECIPE, never)
    assert "up to date" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda out: (out / FILES[2]).write_bytes(b"x"), f"{FILES[2]} is not what was written"),
        (lambda out: (out / FILES[3]).unlink(), f"missing: {FILES[3]}"),
    ],
)
def test_damage_is_noticed_and_made_good(made, capsys, damage, reason):
    before = (made / FILES[2]).read_bytes()
    damage(made)
    build(made, RECIPE, load)
    assert reason in capsys.readouterr().out
    assert names(made) == FILES and (made / FILES[2]).read_bytes() == before
    build(made, RECIPE, never)


def test_other_options_make_it_again(made, capsys):
    build(made, OTHER, load)
    assert "other options" in capsys.readouterr().out
    build(made, OTHER, never)


def test_files_of_others_are_never_replaced(made, tmp_path):
    (made / "training/notes.txt").write_text("mine")
    (made / FILES[2]).write_text("damaged")
    with pytest.raises(DataError, match=r"it holds training/notes.txt.*--out FOLDER"):
        build(made, RECIPE, never, quiet=True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("mine")
    with pytest.raises(DataError, match="in the way"):
        build(foreign, RECIPE, never, quiet=True)
    assert (foreign / "thesis.tex").read_text() == "mine"
    with pytest.raises(DataError, match="in the way"):
        build(foreign / "thesis.tex", RECIPE, never, quiet=True)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"a": {}}}', '{"files": 3}'])
def test_an_unreadable_manifest_protects_the_directory(made, text):
    (made / "manifest.json").write_text(text)
    with pytest.raises(DataError, match="in the way"):
        build(made, RECIPE, never, quiet=True)


def test_what_jupyter_leaves_behind_does_no_harm(made):
    (made / "training/.ipynb_checkpoints").mkdir()
    (made / "training/.ipynb_checkpoints/a").write_text("one")
    build(made, RECIPE, never)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_older_directory(made, tmp_path, tree, monkeypatch, error):
    before = tree(tmp_path)

    def fail(path, _):
        path.write_text("half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "write_bytes", fail)
        with pytest.raises((DataError, KeyboardInterrupt)) as raised:
            build(made, OTHER, load, quiet=True)
    if isinstance(error, OSError):
        assert "No space left on device. Choose a place" in str(raised.value)
    assert tree(tmp_path) == before
    build(made, RECIPE, never)


def test_a_killed_run_leaves_nothing_that_stays_or_is_taken_for_data(made, tmp_path):
    code = (
        "import os, signal, sys; from data_prep import build, digits\n"
        "build.np.savez_compressed = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "digits.prepare(sys.argv[1])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "other")], cwd=Path(__file__).parents[2]
    )
    assert ended.returncode == -signal.SIGKILL
    assert not (tmp_path / "other").exists()
    build(tmp_path / "other", RECIPE, load, quiet=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out"]


def test_two_processes_at_once(tmp_path):
    code = (
        "import sys, time; from data_prep import build, digits; write = build._write_channel\n"
        "build._write_channel = lambda *given: (time.sleep(0.7), write(*given))\n"
        "digits.prepare(sys.argv[1], quiet=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "digits")]
    both = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_folder_without_write_permission(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="Permission denied"):
            build(tmp_path / "out", RECIPE, load, quiet=True)
    finally:
        tmp_path.chmod(0o700)


def test_shard_counts():
    assert shard_counts(1437, 4) == [360, 359, 359, 359]
    assert shard_counts(3, 3) == [1, 1, 1]
    for shards in (0, 4):
        with pytest.raises(DataError, match="expected 1 to 3 files"):
            shard_counts(3, shards)
