"""Horovod on N ranks trains what one process trains; without its all-reduce it doesn't."""

import pytest
from script_harness import (
    HERE,
    SCRIPTS,
    TEN_STEPS,
    check_equals,
    largest_difference,
    mpirun,
    needs_horovod,
    weights,
)

needs_horovod()
pytestmark = pytest.mark.horovod

# Float32 sums in another order differ by an ulp or so a step: 7.5e-8 was measured on weights up
# to 0.33 after 20 steps. Ten times more is allowed; a missing all-reduce differs by 1e-3 and more.
TOLERANCE = 7.5e-7


@pytest.fixture(scope="module")
def reference(trained_alone) -> list:
    """The weights of one process after ten steps."""
    return trained_alone("train_tf.py", TEN_STEPS)


# Lessons 04 and 05 run four ranks, and compare their weights.
@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_ranks_train_what_one_process_trains(run, reference, tmp_path, ranks):
    script = [SCRIPTS / "train_tf_horovod.py", *TEN_STEPS, "--dump-weights", tmp_path]
    done = run(*mpirun(ranks), *script)
    check_equals(reference, tmp_path, ranks, TOLERANCE)
    assert len(done.hashes) == ranks
    assert len(set(done.hashes.values())) == 1


def test_the_comparison_finds_a_missing_all_reduce(run, reference, tmp_path):
    run(*mpirun(2), HERE / "broken_horovod.py", *TEN_STEPS, "--dump-weights", tmp_path)
    with pytest.raises(AssertionError, match="rank 1 differs"):
        check_equals(reference, tmp_path, 2, TOLERANCE)
    assert largest_difference(reference, weights(tmp_path, 0)) > 1000 * TOLERANCE


def test_learns_the_digits_and_saves_a_servable_model(run, tmp_path):
    done = run(*mpirun(2), SCRIPTS / "train_tf_horovod.py")
    losses = [epoch["train_loss"] for epoch in done.events("epoch")]
    assert losses[-1] < losses[0] / 10
    assert done.accuracy >= 0.96
    assert done.events("start")[0]["world_size"] == 2
    assert [p.name for p in (tmp_path / "model").iterdir()] == ["1"]
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()
