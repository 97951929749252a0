"""A prepared folder: complete or not there, made once, never someone else's."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from data_prep_helpers import tree

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


def test_a_missing_file_or_another_number_of_files_makes_it_again(made):
    (made / FILES[1]).unlink()
    write_channels(made, load, SHARDS, quiet=True)
    assert names(made) == FILES
    write_channels(made, load, {"training": 3, "test": 1}, quiet=True)
    assert len(names(made)) == 4


def test_files_of_others_are_never_replaced(made, tmp_path):
    (made / "training/notes.txt").write_text("not of the data set")
    with pytest.raises(DataError, match=r"it holds training/notes.txt.*--out FOLDER"):
        write_channels(made, never, SHARDS, quiet=True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("years of work")
    for path in (foreign, foreign / "thesis.tex"):
        with pytest.raises(DataError, match="in the way"):
            write_channels(path, never, SHARDS, quiet=True)
    assert (foreign / "thesis.tex").read_text() == "years of work"


def test_what_jupyter_leaves_behind_does_no_harm(made):
    (made / "training/.ipynb_checkpoints").mkdir()
    (made / "training/.ipynb_checkpoints/a").write_text("")
    write_channels(made, never, SHARDS)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_older_directory(made, tmp_path, monkeypatch, error):
    before = tree(tmp_path)

    def fail(path, _):
        path.write_text("half")
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "write_bytes", fail)
        with pytest.raises((DataError, KeyboardInterrupt)) as raised:
            write_channels(made, load, {"training": 1, "test": 1}, quiet=True)
    if isinstance(error, OSError):
        assert "No space left on device. Choose a place" in str(raised.value)
    assert tree(tmp_path) == before


def test_a_killed_run_leaves_nothing_that_is_taken_for_data(tmp_path):
    code = (
        "import os, signal, sys; from data_prep import channels, digits\n"
        "channels.np.savez_compressed = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)\n"
        "digits.prepare(sys.argv[1])\n"
    )
    out = tmp_path / "out"
    ended = subprocess.run([sys.executable, "-c", code, str(out)], cwd=Path(__file__).parents[2])
    assert ended.returncode == -signal.SIGKILL
    assert not out.exists()
    write_channels(out, load, SHARDS, quiet=True)
    assert names(out) == FILES


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
