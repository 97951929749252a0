"""Every TensorFlow script that was stopped inside an epoch resumes to the very same weights."""

import shutil
import sys

import numpy as np
import pytest
from script_harness import BIN, SCRIPTS, check_equals, largest_difference, mpirun, weights

import data_prep

SECONDS = 600
LENGTH = ["--log-every", 0, "--threads-per-rank", 1]
EVERY = ["--checkpoint-every", 10]
WORKERS = [sys.executable, SCRIPTS / "common" / "launch_workers.py", "--workers", "2", "--"]
# command, and the step that a run of 33 steps (an epoch has 22) leaves to resume from
SCRIPTS_OF = {
    "alone": ([sys.executable, SCRIPTS / "train_tf.py", *EVERY], 30),
    "mirrored": ([sys.executable, SCRIPTS / "train_tf_mirrored.py", *EVERY], 30),
    "horovod": ([*mpirun(2), SCRIPTS / "train_tf_horovod.py", *EVERY], 30),
    "multiworker": ([*WORKERS, *EVERY], 30),
    "fit": ([*mpirun(2), SCRIPTS / "train_tf_fit.py", "--warmup-steps", 40], 22),
}
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def tfrecords(tmp_path_factory) -> list:
    """The real digits as TFRecord files, as arguments of train_tf_fit.py."""
    out = tmp_path_factory.mktemp("tfrecord") / "digits"
    data_prep.digits.prepare(out, as_tfrecord=True, quiet=True)
    return ["--training", out / "training", "--test", out / "test"]


@pytest.mark.parametrize("which", SCRIPTS_OF)
def test_the_weights_are_those_of_one_run(run, tfrecords, tmp_path, which):
    command, step = SCRIPTS_OF[which]
    if which in ("horovod", "fit") and not (BIN / "mpirun").exists():
        pytest.skip("Horovod is not installed (see requirements/)")
    command = [*command, *LENGTH, *(tfrecords if which == "fit" else [])]

    def go(steps, name, folder):
        more = ["--max-steps", steps, "--dump-weights", tmp_path / name]
        more += ["--checkpoint-dir", folder] if folder else []
        return run(*command, *more, timeout=SECONDS)

    whole = go(60, "whole", "")
    go(33, "cut", tmp_path / "kept")
    again = go(60, "again", tmp_path / "kept")
    assert [one["step"] for one in again.events("resumed")] == [step]
    check_equals(weights(tmp_path / "whole"), tmp_path / "again", len(whole.hashes), 0.0)
    last = [one.events("epoch")[-1] for one in (whole, again)]
    assert last[0]["test_accuracy"] == last[1]["test_accuracy"]
    assert last[0]["train_loss"] == pytest.approx(last[1]["train_loss"], abs=2e-6)


@pytest.mark.parametrize(
    "line", ["optimizer=optimizer, ", "islice(one_pass, self._done_of(epoch, steps), None)"]
)
def test_the_comparison_finds_what_was_forgotten(run, tmp_path, line):
    """Without the momentum, or from the epoch's first batch again, it is another run."""
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    module = folder / "common" / "checkpoint_tf.py"
    text = module.read_text()
    assert line in text
    module.write_text(text.replace(line, "one_pass" if "one_pass" in line else ""))
    command = [sys.executable, folder / "train_tf.py", *EVERY, *LENGTH]
    kept = ["--checkpoint-dir", tmp_path / "kept"]
    run(*command, "--max-steps", 60, "--dump-weights", tmp_path / "whole")
    run(*command, "--max-steps", 33, *kept)
    run(*command, "--max-steps", 60, *kept, "--dump-weights", tmp_path / "again")
    assert largest_difference(weights(tmp_path / "whole"), weights(tmp_path / "again")) > 1e-3


def test_a_model_for_larger_images_does_not_take_the_checkpoint(run, digits, tmp_path):
    command = [sys.executable, SCRIPTS / "train_tf.py", *EVERY, *LENGTH, "--max-steps", 11]
    command += ["--checkpoint-dir", tmp_path / "kept"]
    run(*command)
    with np.load(digits / "training" / "part-00000.npz") as part:
        larger = np.kron(part["images"], np.ones((1, 2, 2, 1), np.uint8)), part["labels"]
    np.savez(tmp_path / "part-00000.npz", images=larger[0], labels=larger[1])
    done = run(*command, "--training", tmp_path, "--test", tmp_path, check=False)
    assert done.code == 1
    assert "of another run: shapes" in done.stderr and "another --checkpoint-dir" in done.stderr
    assert "Traceback" not in done.stderr
