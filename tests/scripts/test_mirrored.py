"""MirroredStrategy on N replicas of one process trains what one device trains."""

import difflib
import subprocess
import sys

import pytest
from script_harness import SCRIPTS, largest_difference, script_env, weights

TEN_STEPS = ["--max-steps", "10", "--log-every", "0"]
# As in test_horovod.py: sums in another order differ by an ulp or so a step.
TOLERANCE = 7.5e-7


@pytest.fixture(scope="module")
def reference(digits, tmp_path_factory) -> list:
    """The weights of one process on one device after ten steps."""
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, SCRIPTS / "train_tf.py", *TEN_STEPS, "--dump-weights", folder]
    subprocess.run(command, env=script_env(digits, folder / "model"), check=True)
    return weights(folder)


@pytest.mark.parametrize("devices", [2, 4])
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


def test_what_differs_is_little_and_marked():
    old, new = (
        (SCRIPTS / name).read_text().split('"""', 2)[2].splitlines()
        for name in ("train_tf.py", "train_tf_mirrored.py")
    )
    # Lines that are only further to the right are not new.
    added = [
        line[2:]
        for line in difflib.ndiff([o.strip() for o in old], [n.strip() for n in new])
        if line.startswith("+ ") and line[2:]
    ]
    assert len(added) <= 60
    assert [line for line in added if "NEW" not in line] == []
