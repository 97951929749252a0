"""A PyTorch run that resumes from a checkpoint trains what an uninterrupted one trains."""

import contextlib
import io
import runpy
import sys
from types import SimpleNamespace

import pytest
from script_harness import (
    HERE,
    SCRIPTS,
    TEN_STEPS,
    Run,
    largest_difference,
    script_env,
    torchrun,
    weights,
)
from test_ddp import TOLERANCE

# 22 steps an epoch: the cut is in the second one, two steps after a checkpoint.
WHOLE = ["--max-steps", "40", "--log-every", "1"]
CUT = ["--max-steps", "32", "--log-every", "1"]
EVERY = ["--checkpoint-every", "6"]
DDP = [*torchrun(4), SCRIPTS / "train_torch_ddp.py"]
pytestmark = pytest.mark.timeout(900)  # a busy machine needs a minute to start four ranks
TWO_TIERS = [*torchrun(2), SCRIPTS / "train_torch_links.py", "--all-reduce", "two_tier"]


def steps(done) -> list[int]:
    return [one["step"] for one in done.events("step")]


def losses(done) -> dict[int, float]:
    return {one["step"]: one["train_loss"] for one in done.events("epoch")}


def resumed(done) -> list[int]:
    return [one["step"] for one in done.events("resumed")]


@pytest.fixture
def alone(digits, tmp_path, monkeypatch):
    """A function that runs a script of one process in this one, where torch is loaded already."""
    import torch

    for name, value in script_env(digits, tmp_path / "model").items():
        monkeypatch.setenv(name, value)
    threads = torch.get_num_threads()

    def run(script: str, *flags, code: int = 0) -> Run:
        monkeypatch.setattr(sys, "argv", [script, *map(str, flags)])
        out, err, ended = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                runpy.run_path(str(SCRIPTS / script), run_name="__main__")
            except SystemExit as end:
                ended = end.code
        assert ended == code, err.getvalue()
        return Run(ended, out.getvalue(), err.getvalue())

    yield run
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def whole_ddp(digits, tmp_path_factory):
    """An uninterrupted run of two ranks."""
    import subprocess

    folder = tmp_path_factory.mktemp("whole")
    done = subprocess.run(
        [str(part) for part in [*DDP, *WHOLE, "--dump-weights", folder]],
        env=script_env(digits, folder / "model"),
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return Run(0, done.stdout, done.stderr), weights(folder)


def check(whole, cut, rest) -> None:
    """The run that was cut and its rest are, together, the whole run."""
    assert whole.events("checkpoint") == []
    assert [one["step"] for one in cut.events("checkpoint")] == [6, 12, 18, 24, 30]
    assert resumed(rest) == [30]
    assert steps(rest) == list(range(31, 41))
    assert rest.hashes == whole.hashes
    # The mean of an epoch's losses is summed in another order, and printed to 1e-6.
    assert losses(rest)[40] == pytest.approx(losses(whole)[40], abs=2e-6)


@pytest.mark.parametrize(
    "script", [["train_torch.py"], ["train_torch_dp.py", "--cpu-replicas", "2"]], ids=str
)
def test_one_process_resumed_equals_uninterrupted(alone, tmp_path, script):
    keep = [*EVERY, "--checkpoint-dir", tmp_path]
    cut = alone(*script, *CUT, *keep)
    check(alone(*script, *WHOLE), cut, alone(*script, *WHOLE, *keep))


@pytest.mark.soak
@pytest.mark.parametrize("command", [DDP, TWO_TIERS], ids=["ddp", "two tiers"])
def test_ranks_resumed_equal_uninterrupted(run, tmp_path, whole_ddp, command):
    keep = [*EVERY, "--checkpoint-dir", tmp_path / "kept"]
    whole = whole_ddp[0] if command == DDP else run(*command, *WHOLE, timeout=240)
    cut = run(*command, *CUT, *keep, timeout=240)
    rest = run(*command, *WHOLE, *keep, "--dump-weights", tmp_path / "rest", timeout=240)
    check(whole, cut, rest)
    if command == DDP:
        assert largest_difference(whole_ddp[1], weights(tmp_path / "rest")) == 0


def test_a_checkpoint_at_each_epochs_end_and_nothing_left_to_do(alone, tmp_path):
    command = ["train_torch.py", "--log-every", "0", "--epochs"]
    keep = ["--checkpoint-dir", tmp_path]
    first = alone(*command, "2", *keep)
    assert [one["step"] for one in first.events("checkpoint")] == [22, 44]
    again = alone(*command, "2", *keep)
    assert again.hashes == first.hashes
    assert again.accuracy == first.accuracy
    longer, at_once = alone(*command, "3", *keep), alone(*command, "3")
    assert [one["epoch"] for one in longer.events("epoch")] == [2, 3]
    assert longer.hashes == at_once.hashes


def test_the_newest_checkpoint_is_damaged(alone, tmp_path):
    command = ["train_torch.py", "--log-every", "0"]
    keep = ["--checkpoint-dir", tmp_path, *EVERY]
    alone(*command, "--max-steps", "20", *keep)
    newest = tmp_path / "step-000000018.pt"
    newest.write_bytes(newest.read_bytes()[:5000])
    rest = alone(*command, "--max-steps", "24", *keep)
    assert resumed(rest) == [12]
    assert rest.hashes == alone(*command, "--max-steps", "24").hashes


@pytest.mark.soak
def test_ranks_resume_what_one_process_kept(alone, run, tmp_path):
    """Not to the last bit: four ranks take sums in another order, for TOLERANCE see test_ddp."""
    keep = ["--checkpoint-every", "6", "--checkpoint-dir", tmp_path / "kept"]
    alone("train_torch.py", "--max-steps", "8", *keep)
    rest = run(*DDP, *TEN_STEPS, *keep, "--dump-weights", tmp_path / "rest", timeout=240)
    assert resumed(rest) == [6]
    alone("train_torch.py", *TEN_STEPS, "--dump-weights", tmp_path / "whole")
    assert largest_difference(weights(tmp_path / "whole"), weights(tmp_path / "rest")) <= TOLERANCE


@pytest.mark.parametrize("rank", ["0", pytest.param("1", marks=pytest.mark.soak)])
def test_torchrun_restarts_and_the_ranks_resume(run, tmp_path, whole_ddp, rank):
    keep = [*EVERY, "--checkpoint-dir", tmp_path]
    launch = [*torchrun(4), "--max-restarts", "1"]
    # Without the last, ranks that are started again find the dead ones' addresses, now and then:
    # https://github.com/pytorch/pytorch/issues/135712, read 2026-11-22.
    variables = {"DIE_RANK": rank, "DIE_AT_STEP": "33", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    done = run(*launch, HERE / "dies_once.py", *WHOLE, *keep, timeout=280, **variables)
    assert resumed(done) == [30]
    assert steps(done)[-10:] == list(range(31, 41))
    assert done.hashes == whole_ddp[0].hashes
    assert "exitcode: -9" in done.stderr


@pytest.mark.soak
def test_without_a_restart_torchrun_ends_and_says_who_died(run, tmp_path):
    script = [HERE / "dies_once.py", *WHOLE, *EVERY, "--checkpoint-dir", tmp_path]
    done = run(*torchrun(2), *script, check=False, DIE_RANK="1", DIE_AT_STEP="9", timeout=240)
    assert done.code != 0
    assert "exitcode  : -9" in done.stderr


def test_another_runs_checkpoint_is_one_line(alone, tmp_path):
    command = ["train_torch.py", "--max-steps", "2", "--checkpoint-every", "2"]
    command += ["--checkpoint-dir", tmp_path]
    alone(*command)
    done = alone(*command, "--seed", "9", code=1)
    assert "error: " in done.stderr
    assert "another run: seed 0 there, 9 here" in done.stderr


def dropping_out(folder, cut):
    """The weights of a model with dropout after six steps, in one go or cut after three."""
    import torch
    from common.checkpoint_torch import Checkpoints
    from common.report import Report

    flags = {"global_batch_size": 2, "learning_rate": 0.1, "seed": 0, "hidden_units": 3}
    flags |= {"checkpoint_dir": folder, "checkpoint_every": 3, "log_every": 0}
    args = SimpleNamespace(**flags)
    images = torch.arange(24.0).reshape(12, 2) / 24
    for last in (3, 6) if cut else (6,):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Dropout(), torch.nn.ReLU())
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        report = Report(args, [])
        kept = Checkpoints(args, model, optimizer, report)
        for batch in kept.batches(torch.utils.data.DataLoader(images, 2, shuffle=True), 1, last):
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            report.step(loss.detach())
    return model[0].weight.detach().numpy()


def test_random_numbers_resume_too(tmp_path):
    # shuffle=True draws the order from the same random numbers, when the epoch begins.
    assert (dropping_out(tmp_path, cut=True) == dropping_out(None, cut=False)).all()
