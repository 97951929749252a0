"""The TensorFlow files of scripts/train, each copied alone into an empty folder."""

import ast
import difflib
import importlib.util
import re
import socket
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
from script_harness import Run
from train_tf_harness import TRAIN, Alone, difference

from data_prep import tfrecord

pytestmark = pytest.mark.slow

ONE = "train_tf.py"
SYNCHRONOUS = ["train_tf_horovod.py", "train_tf_multiworker.py", "train_tf_mirrored.py"]
# Both spellings of a flag are used: SageMaker's hyperparameters come in both.
EPOCHS = ["--epochs", 4, "--log_every", 0, "--checkpoint-dir", "checkpoints"]
ACCURACY = 0.85  # after 4 epochs
# 11 steps an epoch: 24 steps need the third epoch's order, too.
FEW = ["--max-steps", 24, "--global-batch-size", 128, "--log-every", 0, "--threads-per-rank", 1]
# Float32 sums in another order differ by an ulp or so a step: 9e-8 was measured after these 24
# steps, on weights up to 0.46. Ten times more is allowed. It isn't asked after all epochs: an ulp
# can turn a ReLU on or off, and 6e-5 was measured after 88 steps.
TOLERANCE = 9e-7


@pytest.fixture(scope="module")
def trained(digits, tmp_path_factory):
    """A function: the copy of a script that has trained, and what it printed. Each trains once."""
    done: dict = {}

    def trained(name: str, ranks: int, arguments: list) -> tuple[Alone, Run]:
        key = (name, *arguments)
        if key not in done:
            alone = Alone(tmp_path_factory.mktemp("alone") / "run", name, digits)
            done[key] = alone, alone.run(ranks, *arguments)
        return done[key]

    return trained


def check_trained(alone: Alone, done: Run, ranks: int) -> None:
    """It learned, all ranks have the same weights, and its model answers with probabilities."""
    assert done.accuracy >= ACCURACY
    assert sorted(done.hashes) == list(range(ranks)) and len(set(done.hashes.values())) == 1
    (start,) = done.events("start")
    assert (start["world_size"], start["local_batch_size"]) == (ranks, 64 // ranks)
    assert (start["parameters"], start["gradient_bytes"]) == (13_706, 4 * 13_706)
    epochs = done.events("epoch")
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3, 4]
    assert all(epoch["samples_per_second"] > 0 for epoch in epochs)
    assert [path.name for path in (alone.folder / "model").iterdir()] == ["1"]
    assert len(list((alone.folder / "checkpoints").glob("*.index"))) == 2


def test_one_process_learns_and_its_model_serves(trained, digits):
    alone, done = trained(ONE, 1, EPOCHS)
    check_trained(alone, done, 1)
    import tensorflow as tf

    serve = tf.saved_model.load(str(alone.folder / "model" / "1")).signatures["serving_default"]
    part = np.load(digits / "test" / "part-00000.npz")
    out = serve(images=tf.constant(part["images"], tf.float32))["probabilities"].numpy()
    assert out.shape == (360, 10) and np.allclose(out.sum(1), 1, atol=1e-5)
    right = np.mean(out.argmax(1) == part["labels"])
    assert right == pytest.approx(done.accuracy, abs=1e-5)


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_two_ranks_train_what_one_process_trains(trained, name):
    few, done = trained(name, 2, FEW)
    assert sorted(done.hashes) == [0, 1] and len(set(done.hashes.values())) == 1
    (start,) = done.events("start")
    assert (start["world_size"], start["local_batch_size"]) == (2, 64)
    assert difference(few.weights(), trained(ONE, 1, FEW)[0].weights()) <= TOLERANCE


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("train_tf_horovod.py", "mpi"),
        ("train_tf_multiworker.py", "multi_worker_mirrored_strategy"),
        pytest.param("train_tf_fit.py", "mpi", marks=pytest.mark.soak),
        pytest.param("train_tf_mirrored.py", None, marks=pytest.mark.soak),  # two logical CPUs
    ],
)
def test_a_job_trains_what_the_file_trains_by_hand(job_of, trained, name, key):
    _, by_hand = trained(name, 2, FEW)
    assert job_of(name, key, FEW).hashes == by_hand.hashes


@pytest.mark.soak
@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_two_ranks_learn_and_save_what_one_process_saves(trained, name):
    check_trained(*trained(name, 2, EPOCHS), 2)


# file, ranks, steps after which it is killed, step that it must resume at or after
RESUMED = [
    ("train_tf_horovod.py", 2, 16, 14),
    pytest.param(ONE, 1, 16, 14, marks=pytest.mark.soak),
    pytest.param("train_tf_multiworker.py", 2, 16, 14, marks=pytest.mark.soak),
    pytest.param("train_tf_mirrored.py", 2, 16, 14, marks=pytest.mark.soak),
    pytest.param("train_tf_fit.py", 2, 16, 11, marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("name", "ranks", "killed", "step"), RESUMED)
def test_killed_and_started_again_it_ends_with_the_same_weights(
    trained, digits, tmp_path, name, ranks, killed, step
):
    """Killed in the second epoch, and its newest checkpoint is of the second epoch, too."""
    alone = Alone(tmp_path / "run", name, digits)
    flags = [*FEW, "--checkpoint-dir", "checkpoints"]
    if "fit" not in name:
        flags += ["--checkpoint-every", 7]
    alone.run_until_step(killed, ranks, *flags)
    done = alone.run(ranks, *flags)
    (resumed,) = done.events("resumed")
    assert resumed["step"] >= step
    assert done.events("epoch")[0]["epoch"] >= 2
    assert done.hashes == trained(name, ranks, FEW)[1].hashes


def test_all_resume_by_the_same_lines():
    """So that it is enough to kill one of them."""
    resume = {
        ast.unparse(part).replace("'resumed', 0,", "'resumed',")  # whose emit takes the rank
        for name in (ONE, *SYNCHRONOUS, "train_tf_fit.py")
        for part in ast.parse((TRAIN / name).read_text()).body
        if getattr(part, "name", "") == "resume"
    }
    assert len(resume) == 1


# The first is no mistake, if rank 0's weights are copied: that is what the next one shows.
SEEDS = {"set_random_seed(args.seed)": "set_random_seed(args.seed + local_rank)"}
BROADCAST = "    hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)\n"
APART = {
    "no wrap": {"        tape = hvd.DistributedGradientTape(tape)": "        #"},
    "no broadcast": SEEDS | {BROADCAST: ""},
}
ELSEWHERE = {
    "one order for all epochs": {"seed=args.seed + step // per_epoch": "seed=args.seed"},
    "no shard": {"dataset.shard(hvd.size(), hvd.rank()).batch(": "dataset.batch("},
}


@pytest.mark.parametrize(
    "mistake", ["no wrap", pytest.param("no broadcast", marks=pytest.mark.soak)]
)
def test_a_mistake_leaves_the_ranks_apart(digits, tmp_path, mistake):
    alone = Alone(tmp_path / "run", "train_tf_horovod.py", digits, APART[mistake])
    assert len(set(alone.run(2, *FEW).hashes.values())) == 2


@pytest.mark.soak
def test_ranks_that_start_apart_end_alike(digits, tmp_path):
    alone = Alone(tmp_path / "run", "train_tf_horovod.py", digits, SEEDS)
    assert len(set(alone.run(2, *FEW).hashes.values())) == 1


@pytest.mark.parametrize(
    "mistake", ["one order for all epochs", pytest.param("no shard", marks=pytest.mark.soak)]
)
def test_a_mistake_trains_something_else(trained, digits, tmp_path, mistake):
    alone = Alone(tmp_path / "run", "train_tf_horovod.py", digits, ELSEWHERE[mistake])
    ranks = 1 if mistake == "one order for all epochs" else 2
    assert len(set(alone.run(ranks, *FEW).hashes.values())) == 1, "the hash alone doesn't tell"
    assert difference(alone.weights(), trained(ONE, 1, FEW)[0].weights()) > 100 * TOLERANCE


@pytest.mark.soak
def test_workers_without_the_mean_train_something_else(trained, digits, tmp_path):
    sums = {"tf.reduce_mean(losses) / world_size": "tf.reduce_mean(losses)"}
    alone = Alone(tmp_path / "run", "train_tf_mirrored.py", digits, sums)
    alone.run(2, *FEW)
    assert difference(alone.weights(), trained(ONE, 1, FEW)[0].weights()) > 100 * TOLERANCE


BY_CLASS = ["--shard-by", "class", "--log-every", 0, "--checkpoint-dir", "checkpoints"]


def check_every_worker_taught(done: Run) -> None:
    """A model that saw half of the ten classes can be right on half of the test set at most."""
    assert done.accuracy >= 0.85, f"accuracy {done.accuracy}: some digits never reached the model"


@pytest.mark.soak  # lesson 03 asks the same of a job
def test_updates_of_all_workers_reach_the_parameter_server(digits, tmp_path):
    alone = Alone(tmp_path / "run", "train_tf_ps.py", digits)
    done = alone.run(2, *BY_CLASS, "--epochs", 8)
    check_every_worker_taught(done)
    shards = {shard["worker"]: shard["classes"] for shard in done.events("shard")}
    assert shards == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7, 9]}
    assert min(done.events("classes")[0]["accuracy"]) > 0.5
    assert all(epoch["mean_staleness"] >= 0 for epoch in done.events("epoch"))
    assert sum(variable["bytes"] for variable in done.events("variable")) == 4 * 13_706
    assert len(list((alone.folder / "checkpoints").glob("*.index"))) == 2


@pytest.mark.soak
def test_parameter_servers_resume(digits, tmp_path):
    alone = Alone(tmp_path / "run", "train_tf_ps.py", digits)
    alone.run(2, *BY_CLASS, "--epochs", 8)
    again = alone.run(2, *BY_CLASS, "--epochs", 9)
    assert [resumed["step"] for resumed in again.events("resumed")] == [2 * 8 * 22]
    assert [epoch["epoch"] for epoch in again.events("epoch")] == [9]
    check_every_worker_taught(again)


@pytest.mark.soak
def test_the_check_finds_a_worker_whose_updates_are_missing(digits, tmp_path):
    deaf = {'% len(addresses["worker"]) == index': '% len(addresses["worker"]) == 0'}
    alone = Alone(tmp_path / "run", "train_tf_ps.py", digits, deaf)
    with pytest.raises(AssertionError, match="never reached the model"):
        check_every_worker_taught(alone.run(2, *BY_CLASS, "--epochs", 8))


@pytest.mark.parametrize("name", ["train_tf_ps.py", "train_tf_multiworker.py"])
def test_a_host_that_answers_nothing_is_not_waited_for(name):
    """Where an instance has been given back, a connection isn't refused: nobody answers at all."""
    body = ast.parse((TRAIN / name).read_text()).body
    [listens] = [one for one in body if getattr(one, "name", "") == "listens"]
    scope = {"socket": socket}
    exec(ast.unparse(listens), scope)  # importing the file would import TensorFlow
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        assert scope["listens"](*server.getsockname())
        waiting = [socket.socket() for _ in range(8)]  # more than the queue holds: then silence
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(server.getsockname())
        began = time.monotonic()
        assert not scope["listens"](*server.getsockname())
        assert time.monotonic() - began < 60  # unbounded, TCP gives up after 127 s
        for one in waiting:
            one.close()


def test_trains_on_tfrecord_files_of_images_of_cifar10s_size(tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (64, 32, 32, 3), dtype=np.uint8)
    for channel in ("training", "test"):
        (tmp_path / channel).mkdir()
        part = tmp_path / channel / "part-00000.tfrecord"
        tfrecord.write(part, images, rng.integers(0, 10, 64))
    alone = Alone(tmp_path / "run", "train_tf_fit.py", tmp_path)
    batch = ["--global-batch-size", 16, "--learning-rate", 0.01]
    done = alone.run(1, *batch, "--max-steps", 2, "--log-every", 1)
    assert [step["step"] for step in done.events("step")] == [1, 2]


def test_the_deep_model_of_images_of_cifar10s_size():
    """In this process, which has TensorFlow: 25 to 100 MB of weights, and each has a gradient."""
    import tensorflow as tf

    model = loaded(ONE).build_model(SimpleNamespace(model="deep", hidden_units=64), (32, 32, 3))
    assert 25e6 < 4 * model.count_params() < 100e6
    with tf.GradientTape() as tape:
        logits = model(tf.zeros((2, 32, 32, 3)), training=True)
    assert logits.shape == (2, 10)
    assert None not in tape.gradient(logits, model.trainable_variables)


@pytest.mark.parametrize(
    ("name", "ranks", "arguments", "said"),
    [
        (ONE, 1, ["--training", "nowhere"], "error: nowhere can't be used"),
        (ONE, 1, ["--global-batch-size", 2000], "at most the 1437 examples"),
        pytest.param(
            "train_tf_horovod.py",
            2,
            ["--global-batch-size", 65],
            "a multiple of 2 ranks",
            marks=pytest.mark.soak,
        ),
    ],
)
def test_bad_input_ends_with_one_line(monkeypatch, digits, tmp_path, name, ranks, arguments, said):
    if ranks == 1:  # in this process, which has TensorFlow
        script = loaded(name)
        monkeypatch.setattr(script, "set_up", lambda *_: None)  # as the other tests have it
        data = ["--training", digits / "training", "--test", digits / "test"]
        monkeypatch.setattr(sys, "argv", [str(word) for word in (name, *data, *arguments)])
        with pytest.raises(SystemExit, match=re.escape(said)):
            script.main()
    else:
        done = Alone(tmp_path / "run", name, digits).run(ranks, *arguments, check=False)
        assert done.code == 1
        assert said in done.stderr and "Traceback" not in done.stderr


def loaded(name: str):
    """A script as a module of this process."""
    found = importlib.util.spec_from_file_location("a_script", TRAIN / name)
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    return script


FRAMEWORK = {"tensorflow", "horovod", "smdistributed", "numpy"}
LINES = {"horovod": 20, "mirrored": 34, "multiworker": 78, "ps": 105}


@pytest.mark.parametrize("path", sorted(TRAIN.glob("train_tf*.py")), ids=lambda path: path.name)
def test_imports_nothing_of_this_project(path):
    imported = set()
    for node in ast.walk(ast.parse(path.read_text(), feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported - FRAMEWORK <= sys.stdlib_module_names


@pytest.mark.parametrize(("way", "most"), LINES.items())
def test_a_way_adds_few_lines_to_one_process(way, most):
    one, other = ((TRAIN / name).read_text().splitlines() for name in (ONE, f"train_tf_{way}.py"))
    added = [line for line in difflib.ndiff(one, other) if line.startswith("+ ")]
    assert len(added) <= most
