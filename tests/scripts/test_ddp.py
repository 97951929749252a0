"""DDP on N ranks trains what one process trains; without its all-reduce it doesn't."""

import sys
from pathlib import Path

import pytest
from script_harness import (
    HERE,
    SCRIPTS,
    TEN_STEPS,
    check_equals,
    largest_difference,
    mpirun,
    torchrun,
    weights,
)

# Float32 sums in another order differ by an ulp or so a step: 3e-8 was measured on weights up to
# 0.34 after 20 steps. Ten times more is allowed; a missing all-reduce differs by 1e-3 and more.
TOLERANCE = 3e-7


@pytest.fixture(scope="module")
def reference(trained_alone) -> list:
    """The weights of one process after ten steps."""
    return trained_alone("train_torch.py", TEN_STEPS)


@pytest.mark.parametrize("ranks", [2, 4])
def test_ranks_train_what_one_process_trains(run, reference, tmp_path, ranks):
    script = [SCRIPTS / "train_torch_ddp.py", *TEN_STEPS, "--dump-weights", tmp_path]
    done = run(*torchrun(ranks), *script)
    check_equals(reference, tmp_path, ranks, TOLERANCE)
    assert len(done.hashes) == ranks
    assert len(set(done.hashes.values())) == 1


def test_the_comparison_finds_a_missing_all_reduce(run, reference, tmp_path):
    run(*torchrun(2), HERE / "broken_ddp.py", *TEN_STEPS, "--dump-weights", tmp_path)
    with pytest.raises(AssertionError, match="rank 1 differs"):
        check_equals(reference, tmp_path, 2, TOLERANCE)
    assert largest_difference(reference, weights(tmp_path, 0)) > 1000 * TOLERANCE


def test_runs_under_mpirun_and_alone(run, reference, tmp_path):
    from common.launch_ps import free_addresses

    script = [SCRIPTS / "train_torch_ddp.py", *TEN_STEPS, "--dump-weights", tmp_path]
    run(sys.executable, *script)
    check_equals(reference, tmp_path, 1, TOLERANCE)
    if not Path(mpirun(2)[0]).exists():
        pytest.skip("no mpirun beside the Python")
    port = free_addresses(1)[0].rpartition(":")[2]
    run(*mpirun(2), *script, MASTER_PORT=port)
    check_equals(reference, tmp_path, 2, TOLERANCE)


def test_learns_the_digits_and_saves_a_model_that_loads(run, digits, tmp_path):
    from common.data import load_channel
    from common.model_torch import accuracy, load_model

    done = run(*torchrun(2), SCRIPTS / "train_torch_ddp.py")
    losses = [epoch["train_loss"] for epoch in done.events("epoch")]
    assert losses[-1] < losses[0] / 10
    assert done.accuracy >= 0.96
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["model.pt"]
    saved = accuracy(load_model(tmp_path / "model"), *load_channel(digits / "test"))
    assert saved == pytest.approx(done.accuracy, abs=1e-6)


def test_single_process_learns_the_digits(run):
    assert run(sys.executable, SCRIPTS / "train_torch.py").accuracy >= 0.96


def test_says_when_the_batch_cannot_be_split(run):
    script = [SCRIPTS / "train_torch_ddp.py", "--global-batch-size", "65"]
    done = run(*torchrun(2), *script, check=False)
    assert done.code != 0
    assert "can't be split evenly among 2 ranks; choose 64 or 66" in done.stderr
