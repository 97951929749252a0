"""Checkpoint files: whole or not at all, the newest that can be read, nobody else's."""

import json
import os

import pytest
from common import arguments, checkpoints
from common.arguments import parser_for
from common.checkpoints import CheckpointFiles
from common.errors import ScriptError
from script_harness import SCRIPTS  # noqa: F401  (puts scripts/ on the path)


def args(folder, *words):
    return parser_for("a.py", "What.\n").parse_args(["--checkpoint-dir", str(folder), *words])


def files(folder, *words, rank=0, **settings):
    return CheckpointFiles(args(folder, *words), "torch", rank, **settings)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def skipped(capsys):
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return [one["reason"] for one in lines if one["event"] == "checkpoint_skipped"]


def test_the_newest_is_found_and_two_are_kept(tmp_path):
    kept = files(tmp_path / "new")
    assert kept.latest() is None
    for step in (9, 1_000_000, 120):
        kept.save(step, b"state of %d" % step)
    assert names(tmp_path / "new") == ["step-000120.ckpt", "step-1000000.ckpt"]
    assert files(tmp_path / "new").latest() == b"state of 1000000"


def test_other_ranks_read_and_do_not_write(tmp_path):
    files(tmp_path, rank=1).save(1, b"no")
    assert names(tmp_path) == []
    files(tmp_path).save(1, b"yes")
    assert files(tmp_path, rank=1).latest() == b"yes"


def test_without_a_folder_nothing_is_due_and_nothing_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kept = files("")
    assert not any(kept.due(step, True) for step in range(5))
    kept.save(1, b"x")
    assert kept.latest() is None and names(tmp_path) == []


def test_when_one_is_due(tmp_path):
    assert [files(tmp_path).due(7, ends) for ends in (True, False)] == [True, False]
    every = files(tmp_path, "--checkpoint-every", "5")
    assert [step for step in range(1, 12) if every.due(step, step == 11)] == [5, 10]


def cut_off(raw):
    return raw[:-1]


def one_bit(raw):
    return raw[:-3] + bytes([raw[-3] ^ 1]) + raw[-2:]


def headless(raw):
    return raw.partition(b"\n")[2]


def no_json(raw):
    return b"[1]\n" + raw


DAMAGE = {
    "cut off": (cut_off, "damaged"),
    "one bit": (one_bit, "damaged"),
    "longer": (lambda raw: raw + b"x", "damaged"),
    "empty": (lambda raw: b"", "no checkpoint"),
    "head alone": (lambda raw: raw.partition(b"\n")[0], "no checkpoint"),
    "no head": (headless, "no checkpoint"),
    "another head": (no_json, "no checkpoint"),
    "another form": (lambda raw: raw.replace(b"checkpoint 1", b"checkpoint 9"), "no checkpoint"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_passed_over_for_the_one_before(tmp_path, capsys, damage):
    change, said = DAMAGE[damage]
    kept = files(tmp_path)
    kept.save(10, b"before")
    kept.save(20, b"newest")
    newest = tmp_path / "step-000020.ckpt"
    newest.write_bytes(change(newest.read_bytes()))
    capsys.readouterr()
    assert kept.latest() == b"before"
    (reason,) = skipped(capsys)
    assert said in reason


def test_a_renamed_file_is_passed_over(tmp_path, capsys):
    kept = files(tmp_path)
    kept.save(10, b"ten")
    (tmp_path / "step-000030.ckpt").write_bytes((tmp_path / "step-000010.ckpt").read_bytes())
    capsys.readouterr()
    assert kept.latest() == b"ten"
    assert "holds step 10" in skipped(capsys)[0]


def test_what_is_no_checkpoint_by_name_is_left_alone(tmp_path):
    for name in ("notes.txt", "step-7.ckpt", "step-000007.pt"):
        (tmp_path / name).write_text("mine")
    (tmp_path / "step-000009.ckpt").mkdir()
    before = names(tmp_path)
    kept = files(tmp_path)
    assert kept.latest() is None
    kept.save(7, b"x")
    assert names(tmp_path) == sorted([*before, "step-000007.ckpt"])


def test_all_damaged_is_an_error_not_a_new_beginning(tmp_path):
    (tmp_path / "step-000001.ckpt").write_text("x")
    with pytest.raises(ScriptError, match=r"none of the 1 checkpoints .* Remove them"):
        files(tmp_path).latest()


def test_another_runs_checkpoint_is_refused(tmp_path):
    files(tmp_path).save(1, b"x")
    for other in (["--seed", "3"], ["--hidden-units", "9"], ["--global-batch-size", "2"]):
        with pytest.raises(ScriptError, match=f"another run: {other[0][2:]} .* {other[1]} here"):
            files(tmp_path, *other).latest()
    with pytest.raises(ScriptError, match="made-by 'torch' there, 'tf' here"):
        CheckpointFiles(args(tmp_path), "tf").latest()
    with pytest.raises(ScriptError, match="library None there, 'horovod' here"):
        files(tmp_path, library="horovod").latest()
    assert files(tmp_path, "--epochs", "99", "--max-steps", "7").latest() == b"x"


def test_a_crash_while_writing_leaves_the_one_before(tmp_path, monkeypatch):
    kept = files(tmp_path)
    kept.save(1, b"before")

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(KeyboardInterrupt):
        kept.save(2, b"after")
    assert names(tmp_path) == ["step-000001.ckpt"]
    assert kept.latest() == b"before"


def test_what_a_killed_run_left_half_written_goes(tmp_path):
    (tmp_path / ".step-000003.ckpt.partial").write_text("ha")
    assert files(tmp_path).latest() is None
    files(tmp_path).save(5, b"x")
    assert names(tmp_path) == ["step-000005.ckpt"]


def test_a_disk_that_takes_no_more_is_said(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ScriptError, match=r"step 3 can't be written .*No space left.*Make room"):
        files(tmp_path).save(3, b"x")
    assert names(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ScriptError, match="Choose another --checkpoint-dir"):
        files(tmp_path / "file").latest()
    with pytest.raises(ScriptError, match="choose another --checkpoint-dir"):
        files(tmp_path / "file").save(1, b"x")


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


def test_the_reader_needs_no_run(tmp_path):
    files(tmp_path).save(5, b"state\nof lines")
    head, state = checkpoints.read(tmp_path / "step-000005.ckpt")
    assert (head["step"], head["settings"]["seed"], state) == (5, 0, b"state\nof lines")
