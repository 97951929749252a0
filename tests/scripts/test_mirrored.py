"""MirroredStrategy on N replicas of one process trains what one device trains."""

import sys

import pytest
from script_harness import SCRIPTS, TEN_STEPS, largest_difference, weights

# As in test_horovod.py: sums in another order differ by an ulp or so a step.
TOLERANCE = 7.5e-7


@pytest.fixture(scope="module")
def reference(trained_alone) -> list:
    """The weights of one process on one device after ten steps."""
    return trained_alone("train_tf.py", TEN_STEPS)


@pytest.mark.parametrize("devices", [4, pytest.param(2, marks=pytest.mark.soak)])
def test_replicas_train_what_one_device_trains(run, reference, tmp_path, devices):
    script = [SCRIPTS / "train_tf_mirrored.py", *TEN_STEPS, "--devices", devices]
    done = run(sys.executable, *script, "--dump-weights", tmp_path, timeout=240)
    (start,) = done.events("start")
    assert start["world_size"] == devices and start["local_batch_size"] == 64 // devices
    assert sorted(done.hashes) == list(range(devices)), "one hash for each replica"
    assert len(set(done.hashes.values())) == 1
    assert largest_difference(reference, weights(tmp_path, devices - 1)) <= TOLERANCE
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()


def test_the_comparison_finds_a_loss_that_is_not_divided(run, reference, tmp_path):
    """Forgotten, the division makes the gradient as many times too large as there are replicas."""
    text = (SCRIPTS / "train_tf_mirrored.py").read_text()
    broken = tmp_path / "train_tf_mirrored.py"
    assert " / replicas  # NEW: / replicas" in text
    broken.write_text(text.replace(" / replicas  # NEW: / replicas", ""))
    run(sys.executable, broken, *TEN_STEPS, "--dump-weights", tmp_path, PYTHONPATH=str(SCRIPTS))
    assert largest_difference(reference, weights(tmp_path)) > 1000 * TOLERANCE


def test_unequal_parts_are_refused(run):
    script = [SCRIPTS / "train_tf_mirrored.py", *TEN_STEPS, "--global-batch-size", 63]
    done = run(sys.executable, *script, check=False)
    assert done.code == 1
    assert "--global-batch-size 63 can't be split evenly among 2" in done.stderr
