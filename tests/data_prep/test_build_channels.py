"""A prepared folder: complete or not there, made once, never someone else's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_prep import channels as module
from data_prep.channels import DataError, write_channels

SHARDS = {"training": 2, "test": 1}
FILES = ["test/part-00000.npz", "training/part-00000.npz", "training/part-00001.npz"]


def load():
    images = np.arange(5 * 4, dtype=np.uint8).reshape(5, 2, 2, 1)
    return {"training": (images[:3], np.arange(3)), "test": (images[3:], np.arange(2))}


def never():
    raise AssertionError("must not be made again")


def names(folder):
    return [p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_file()]


@pytest.fixture
def made(tmp_path):
    return write_channels(tmp_path / "out", load, SHARDS, quiet=True)


def test_files_and_second_run(made, tmp_path, capsys):
    assert names(tmp_path) == [f"out/{name}" for name in FILES]
    with np.load(made / "training/part-00001.npz") as part:
        assert part["images"].tolist() == [[[[8], [9]], [[10], [11]]]]
        assert part["labels"].tolist() == [2]
    write_channels(made, never, SHARDS)
    assert "is there already" in capsys.readouterr().out


def test_what_is_there_is_never_replaced(made, tmp_path):
    (made / FILES[1]).unlink()
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    for path in (made, foreign, foreign / "thesis.tex"):
        with pytest.raises(DataError, match=r"in the way.*--out FOLDER"):
            write_channels(path, never, SHARDS, quiet=True)
    assert (foreign / "thesis.tex").read_text() == "years of work"


def test_what_jupyter_leaves_behind_does_no_harm(made):
    (made / "training/.ipynb_checkpoints").mkdir()
    (made / "training/.ipynb_checkpoints/a").write_text("")
    write_channels(made, never, SHARDS)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_nothing(tmp_path, tree, monkeypatch, error):
    def fail(path, _):
        path.write_text("half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "write_bytes", fail)
        with pytest.raises((DataError, KeyboardInterrupt)) as raised:
            write_channels(tmp_path / "out", load, SHARDS, quiet=True)
    if isinstance(error, OSError):
        assert "No space left on device. Choose a place" in str(raised.value)
    assert tree(tmp_path) == []


def test_two_processes_at_once(tmp_path):
    code = (
        "import sys, time; from data_prep import channels, digits\n"
        "write = channels._write_channel\n"
        "channels._write_channel = lambda *given: (time.sleep(0.7), write(*given))\n"
        "digits.prepare(sys.argv[1], quiet=True)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "digits")]
    both = [subprocess.Popen(command, cwd=Path(__file__).parents[2]) for _ in range(2)]
    assert [process.wait(120) for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["digits"]
    assert len(names(tmp_path)) == 5
