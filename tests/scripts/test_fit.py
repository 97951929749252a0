"""model.fit with Horovod or SMDDP: equal weights, the broadcast, the data, and what breaks them."""

import shutil
import sys

import pytest
from script_harness import SCRIPTS, mpirun, needs_horovod

import data_prep

needs_horovod()
pytestmark = [pytest.mark.horovod, pytest.mark.slow]


@pytest.fixture(scope="module")
def channels(tmp_path_factory):
    """The real digits as TFRecord files, as arguments of the script."""
    out = tmp_path_factory.mktemp("tfrecord") / "digits"
    data_prep.digits.prepare(out, as_tfrecord=True, quiet=True)
    return ["--training", out / "training", "--test", out / "test"]


def two_seeds(script, *arguments):
    """Two ranks that begin with different weights."""
    command = [*mpirun(1), script, *arguments, "--seed", "0"]
    return [*command, ":", *mpirun(1)[-3:], script, *arguments, "--seed", "1"]


def without(line, tmp_path):
    """A copy of the scripts in which train_tf_fit.py lacks the lines that contain `line`."""
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    script = folder / "train_tf_fit.py"
    kept = [one for one in script.read_text().splitlines() if line not in one]
    assert len(kept) < len(script.read_text().splitlines())
    script.write_text("\n".join(kept))
    return script


def test_ranks_that_start_apart_end_alike_and_learn(run, channels, tmp_path):
    script = SCRIPTS / "train_tf_fit.py"
    rates = ["--epochs", 8, "--learning-rate", 0.1, "--warmup-steps", 10, "--log-every", 0]
    done = run(*two_seeds(script, *channels, *rates))
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1
    losses = [epoch["train_loss"] for epoch in done.events("epoch")]
    assert len(losses) == 8 and losses[-1] < losses[0] / 4
    assert done.accuracy >= 0.9
    assert (tmp_path / "model" / "1" / "saved_model.pb").exists()


FEW = ["--max-steps", 5, "--log-every", 0]


@pytest.mark.parametrize("line", ["api.broadcast_variables(", "DistributedGradientTape(tape)"])
def test_without_broadcast_or_tape_the_ranks_end_apart(run, channels, tmp_path, line):
    done = run(*two_seeds(without(line, tmp_path), *channels, *FEW))
    assert len(set(done.hashes.values())) == 2
    assert done.events("epoch")[0]["step"] == 5, "--max-steps 5 ends it in the first epoch"


def test_alone_it_is_rank_0_of_1(run, channels):
    done = run(sys.executable, SCRIPTS / "train_tf_fit.py", *channels, *FEW)
    assert done.events("start")[0]["world_size"] == 1


@pytest.mark.parametrize(
    "content, said",
    [(None, r"no \*\.tfrecord in"), ([], "holds no records"), ([b"x"], "an image of 1 bytes")],
)
def test_data_that_is_not_there_or_of_another_form(tmp_path, content, said):
    from common.errors import ScriptError
    from common.keras2 import tf
    from common.tfrecords import Channel

    if content is not None:
        with tf.io.TFRecordWriter(str(tmp_path / "part.tfrecord")) as writer:
            for image in content:
                features = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[image])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[1])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
    with pytest.raises(ScriptError, match=said):
        Channel(tmp_path)


def test_what_is_wrong_with_the_data_is_one_line(run, channels, tmp_path):
    script = [sys.executable, SCRIPTS / "train_tf_fit.py", "--training", tmp_path]
    done = run(*script, *channels[2:], check=False)
    assert done.code == 1 and "no *.tfrecord in" in done.stderr
    assert "Traceback" not in done.stderr
