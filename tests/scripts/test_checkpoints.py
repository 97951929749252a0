"""Checkpoints: whole or not at all, the newest that can be read, never another run's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from common import arguments
from common.arguments import parser_for
from common.checkpoints import CheckpointFolder
from common.errors import ScriptError
from script_harness import HERE


def args(folder, *words):
    return parser_for("a.py", "What.\n").parse_args(["--checkpoint-dir", str(folder), *words])


def checkpoints(folder, *words, weights=3):
    """Checkpoints of a small PyTorch model; its weight is the number of the last step."""
    import torch
    from common.checkpoint_torch import Checkpoints
    from common.report import Report

    model = torch.nn.Linear(weights, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    flags = args(folder, "--log-every", "0", *words)
    report = Report(flags, [])
    return SimpleNamespace(made=Checkpoints(flags, model, optimizer, report), model=model)


def train(folder, steps, every=10):
    """Train on `steps` steps, the weight of each being its number; write checkpoints."""
    import torch

    run = checkpoints(folder, "--checkpoint-every", str(every))
    for step in run.made.batches(list(range(1, 1000)), 1, steps):
        run.made._report.step(torch.tensor(0.0))
        run.model.weight.data.fill_(step)


def weight(folder):
    return checkpoints(folder).model.weight[0, 0].item()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def skipped(capsys):
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [one["file"] for one in lines if one["event"] == "checkpoint_skipped"]


THIRTY = ["settings.json", "step-000000020.pt", "step-000000030.pt"]


def test_the_newest_is_found_and_two_are_kept(tmp_path):
    train(tmp_path / "new", 35)
    assert names(tmp_path / "new") == THIRTY
    assert weight(tmp_path / "new") == 30


def test_without_a_folder_nothing_is_due_and_nothing_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = CheckpointFolder(args(""), "torch", [])
    assert not any(folder.due(step, True) for step in range(5))
    train("", 35)
    assert names(tmp_path) == []


def test_when_one_is_due(tmp_path):
    def due(*words):
        return CheckpointFolder(args(tmp_path, *words), "torch", []).due

    assert [due()(7, ends) for ends in (True, False)] == [True, False]
    every = due("--checkpoint-every", "5")
    assert [step for step in range(1, 12) if every(step, step == 11)] == [5, 10]


@pytest.mark.parametrize("left", [0, 100, -1])
def test_a_damaged_file_is_passed_over_for_the_one_before(tmp_path, capsys, left):
    train(tmp_path, 35)
    newest = tmp_path / THIRTY[-1]
    newest.write_bytes(newest.read_bytes()[:left])
    capsys.readouterr()
    assert weight(tmp_path) == 20
    assert skipped(capsys) == [str(newest)]
    (tmp_path / THIRTY[1]).write_text("x")
    with pytest.raises(ScriptError, match=r"none of the 2 checkpoints .* Remove them"):
        checkpoints(tmp_path)


@pytest.mark.parametrize("crash", ["fsync", "replace"])
def test_a_crash_while_writing_leaves_the_one_before(tmp_path, monkeypatch, crash):
    train(tmp_path, 35)

    def die(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, crash, die)
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path, 45)
    assert names(tmp_path) == ["partial", *THIRTY]
    assert weight(tmp_path) == 30
    train(tmp_path, 45)  # what was left half written is no hindrance, and goes
    assert names(tmp_path) == ["settings.json", THIRTY[-1], "step-000000040.pt"]
    assert weight(tmp_path) == 40


@pytest.mark.parametrize("settings", ["", '{"seed": 0'])
def test_settings_are_whole_before_there_is_a_checkpoint(tmp_path, monkeypatch, settings):
    """What a run that was killed at its first checkpoint left is written anew, in one step."""
    (tmp_path / "settings.json").write_text(settings)
    train(tmp_path, 10)
    assert weight(tmp_path) == 10
    monkeypatch.setattr(Path, "write_text", never)  # and is not touched again
    train(tmp_path, 25)
    monkeypatch.undo()
    assert weight(tmp_path) == 20


def test_another_runs_checkpoint_is_refused(tmp_path):
    train(tmp_path, 10)
    for other in (["--seed", "3"], ["--hidden-units", "9"], ["--global-batch-size", "2"]):
        with pytest.raises(ScriptError, match=f"another run: {other[0][2:]} .* {other[1]} here"):
            checkpoints(tmp_path, *other)
    with pytest.raises(ScriptError, match="framework 'torch' there, 'tf' here"):
        shapes = [[1, 3], [1]]
        CheckpointFolder(args(tmp_path), "tf", shapes).load(["step-1"], never)
    with pytest.raises(
        ScriptError, match=r"shapes \[\[1, 3\], \[1\]\] there, \[\[1, 4\], \[1\]\] he"
    ):
        checkpoints(tmp_path, weights=4)
    assert weight(tmp_path) == 10, "other numbers of steps are no other run"
    checkpoints(tmp_path, "--epochs", "99", "--max-steps", "7")
    (tmp_path / "settings.json").unlink()
    with pytest.raises(ScriptError, match="another run"):
        checkpoints(tmp_path)


def never(*_):
    raise AssertionError("must not be called")


def test_a_disk_that_takes_no_more_is_said(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ScriptError, match=r"step 10 can't be written .*No space left.*Make room"):
        train(tmp_path, 10)
    assert names(tmp_path) == ["partial", "settings.json"]


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ScriptError, match="choose another --checkpoint-dir"):
        train(tmp_path / "file", 10)


def test_tensorflows_half_written_checkpoints_are_passed_over(tmp_path):
    """In a process of its own: importing TensorFlow with Keras 2 changes the environment."""
    command = [sys.executable, HERE / "half_written_tf.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    assert [json.loads(line) for line in done.stdout.splitlines() if '"weight"' in line] == [
        {"weight": 30.0, "of": "whole"},
        {"weight": 30.0, "of": "killed before the list was written"},
        {"weight": 20.0, "of": "index not there"},
        {"weight": 20.0, "of": "damaged data"},
    ]


def default(monkeypatch, variable, folder):
    monkeypatch.setattr(arguments, "_CHECKPOINTS", folder)
    monkeypatch.delenv("SM_CHECKPOINT_DIR", raising=False)
    if variable:
        monkeypatch.setenv("SM_CHECKPOINT_DIR", str(variable))
    return parser_for("a.py", "What.\n").parse_args([]).checkpoint_dir


def test_the_default_folder(monkeypatch, tmp_path):
    assert default(monkeypatch, None, tmp_path / "absent") is None
    assert default(monkeypatch, None, tmp_path) == tmp_path
    assert default(monkeypatch, "/elsewhere", tmp_path) == arguments.Path("/elsewhere")


def test_a_script_without_checkpoints_has_no_such_flag(capsys):
    with pytest.raises(SystemExit):
        parser_for("a.py", "What.\n", checkpoints=False).parse_args(["--checkpoint-dir", "x"])
    assert "unrecognized arguments: --checkpoint-dir" in capsys.readouterr().err
