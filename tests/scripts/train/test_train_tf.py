"""The TensorFlow files of scripts/train, each copied alone into an empty folder."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from script_harness import (
    DEMOS,
    LAUNCHER,
    TRAIN,
    Run,
    alone,
    channels,
    copied,
    difference,
    finish,
    module,
    mpirun,
    needs_horovod,
    start,
)

from data_prep import tfrecord

pytestmark = pytest.mark.slow

ONE = "train_tf.py"
SEVERAL = "train_tf_mirrored.py, TF_CONFIG"  # the same file: it takes the strategy for workers
SYNCHRONOUS = ["train_tf_horovod.py", "train_tf_mirrored.py", SEVERAL]
# 11 steps an epoch: 24 steps need the third epoch's order, too.
FEW = ["--max-steps", 24, "--global-batch-size", 128, "--log-every", 0]
# Float32 sums in another order differ by an ulp or so a step: 9e-8 was measured after these 24
# steps, on weights up to 0.46. Ten times more is allowed. It isn't asked after all epochs: an ulp
# can turn a ReLU on or off, and 6e-5 was measured after 88 steps.
TOLERANCE = 9e-7


def command(name: str, ranks: int) -> list:
    """How a script starts with so many ranks."""
    if "horovod" in name or "fit" in name:
        needs_horovod()
        return mpirun(ranks)
    cluster = [sys.executable, LAUNCHER, "--workers", ranks]
    if "_ps" in name:
        return [*cluster, "--ps", 1]
    return cluster if name == SEVERAL else alone()


def train(digits: Path, folder: Path, name: str, ranks: int, *flags, edits=()) -> Run:
    """Run a copy of a script; two devices are what MirroredStrategy has in the place of ranks."""
    script = copied(name.split(",")[0], folder, *edits)
    return start(command(name, ranks), script, *channels(digits), *flags)


@pytest.fixture(scope="module")
def trained(digits, tmp_path_factory):
    """A function: a script's folder after the few steps, and what it printed. Each trains once."""
    done: dict = {}

    def trained(name: str, ranks: int) -> tuple[Path, Run]:
        if name not in done:
            folder = tmp_path_factory.mktemp("few") / "run"
            done[name] = folder, train(digits, folder, name, ranks, *FEW)
        return done[name]

    return trained


def weights(folder: Path) -> dict[str, np.ndarray]:
    """The weights of the SavedModel, by name."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    saved = tf.train.load_checkpoint(str(folder / "model" / "1" / "variables/variables"))
    names = [name for name in saved.get_variable_to_shape_map() if "layer_with" in name]
    assert len(names) == 8
    return {name: saved.get_tensor(name) for name in names}


def accuracy_served(folder: Path, digits: Path) -> float:
    """The accuracy of the saved model's signature on the test images."""
    import tensorflow as tf

    serve = tf.saved_model.load(str(folder / "model" / "1")).signatures["serving_default"]
    part = np.load(digits / "test" / "part-00000.npz")
    out = serve(images=tf.constant(part["images"], tf.float32))["probabilities"].numpy()
    assert out.shape == (360, 10) and np.allclose(out.sum(1), 1, atol=1e-5)
    return float(np.mean(out.argmax(1) == part["labels"]))


def test_one_process_learns_and_its_model_serves(trained, digits):
    folder, done = trained(ONE, 1)
    assert done.accuracy >= 0.6  # after few steps; chance is 0.1
    (start,) = done.events("start")
    assert (start["world_size"], start["local_batch_size"]) == (1, 128)
    assert (start["parameters"], start["gradient_bytes"]) == (13_706, 4 * 13_706)
    epochs = done.events("epoch")
    assert [epoch["epoch"] for epoch in epochs] == [1, 2, 3]
    assert all(epoch["samples_per_second"] > 0 for epoch in epochs)
    assert [path.name for path in (folder / "model").iterdir()] == ["1"]
    assert accuracy_served(folder, digits) == pytest.approx(done.accuracy, abs=1e-5)


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_two_ranks_train_what_one_process_trains(trained, name):
    folder, done = trained(name, 2)
    assert sorted(done.hashes) == [0, 1] and len(set(done.hashes.values())) == 1
    (start,) = done.events("start")
    assert (start["world_size"], start["local_batch_size"]) == (2, 64)
    assert difference(folder, trained(ONE, 1)[0], weights) <= TOLERANCE


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("train_tf_horovod.py", "mpi"),
        # Lesson 05 runs such a job beside the others, and compares their losses.
        pytest.param(SEVERAL, "multi_worker_mirrored_strategy", marks=pytest.mark.soak),
        pytest.param("train_tf_fit.py", "mpi", marks=pytest.mark.soak),
        pytest.param("train_tf_mirrored.py", None, marks=pytest.mark.soak),  # two logical CPUs
    ],
)
def test_a_job_trains_what_the_file_trains_by_hand(job_of, trained, name, key):
    _, by_hand = trained(name, 2)
    assert job_of(name.split(",")[0], key, [*FEW, "--threads-per-rank", 1]).hashes == by_hand.hashes


# The first is no mistake, if rank 0's weights are copied: that is what the next one shows.
SEEDS = (" random.seed(args.seed)", " random.seed(args.seed + rank)")
BROADCAST = "    hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)\n"
ALIKE, APART, ELSEWHERE = "alike", "the ranks differ", "not what one process trains"
MISTAKES = {
    "start apart": ("train_tf_horovod.py", ALIKE, [SEEDS]),
    "no broadcast": ("train_tf_horovod.py", APART, [SEEDS, (BROADCAST, "")]),
    "no wrap": (
        "train_tf_horovod.py",
        APART,
        [("        tape = hvd.DistributedGradientTape(tape)", "        #")],
    ),
    "one order for all epochs": (
        "train_tf_horovod.py",
        ELSEWHERE,
        [("seed=args.seed + epoch", "seed=args.seed")],
    ),
    "no shard": (
        "train_tf_horovod.py",
        ELSEWHERE,
        [
            (
                "(images[part], labels[part])",
                "(images[: 128 // hvd.size()], labels[: 128 // hvd.size()])",
            )
        ],
    ),
    "a sum in place of the mean": (
        "train_tf_mirrored.py",
        ELSEWHERE,
        [("tf.reduce_mean(losses) / world_size", "tf.reduce_mean(losses)")],
    ),
}


@pytest.mark.soak  # test_train_torch.py and lesson 05 notice one in `make test`
@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_left_out_is_noticed(trained, digits, tmp_path, mistake):
    name, outcome, edits = MISTAKES[mistake]
    done = train(digits, tmp_path, name, 2, *FEW, edits=edits)
    assert len(set(done.hashes.values())) == (2 if outcome == APART else 1)
    if outcome == ELSEWHERE:  # the hash alone doesn't tell
        assert difference(tmp_path, trained(ONE, 1)[0], weights) > 100 * TOLERANCE


@pytest.mark.soak  # lesson 03 asks the same of a job
def test_updates_of_all_workers_reach_the_parameter_server(digits, tmp_path):
    flags = ["--shard-by", "class", "--log-every", 0, "--epochs", 8]
    done = train(digits, tmp_path, "train_tf_ps.py", 2, *flags)
    # A model that saw half of the ten classes can be right on half of the test set at most.
    assert done.accuracy >= 0.85 and min(done.events("classes")[0]["accuracy"]) > 0.5
    shards = {shard["worker"]: shard["classes"] for shard in done.events("shard")}
    assert shards == {0: [0, 2, 4, 6, 8], 1: [1, 3, 5, 7, 9]}
    assert all(epoch["mean_staleness"] >= 0 for epoch in done.events("epoch"))
    assert sum(variable["bytes"] for variable in done.events("variable")) == 4 * 13_706
    assert accuracy_served(tmp_path, digits) == pytest.approx(done.accuracy, abs=1e-5)


def tfrecords(folder: Path, counts: tuple[int, ...], shape=(8, 8, 1)) -> list[str]:
    """Files of so many records each; a picture's first two pixels number it through all files."""
    folder.mkdir(parents=True)
    numbers = np.split(np.arange(sum(counts)), np.cumsum(counts)[:-1])
    for index, part in enumerate(numbers):
        images = np.zeros((len(part), *shape), np.uint8)
        images.reshape(len(part), -1)[:, :2] = np.stack([part // 256, part % 256], 1)
        tfrecord.write(folder / f"part-{index:05}.tfrecord", images, part % 10)
    return sorted(map(str, folder.iterdir()))


@pytest.mark.soak  # lesson 09 trains on such files
def test_trains_on_tfrecord_files_of_images_of_cifar10s_size(tmp_path):
    for channel in ("training", "test"):
        tfrecords(tmp_path / channel, (33, 31), (32, 32, 3))
    flags = ["--global-batch-size", 16, "--learning-rate", 0.01, "--epochs", 2, "--log-every", 1]
    done = train(tmp_path, tmp_path / "run", "train_tf_fit.py", 2, *flags)
    assert [step["step"] for step in done.events("step")] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert len(done.hashes) == 2 and len(set(done.hashes.values())) == 1


@pytest.mark.parametrize("counts", [(40, 40), (40, 30, 10)], ids=["by file", "by record"])
def test_ranks_stream_each_record_once_an_epoch(tmp_path, counts):
    script, files = module("train_tf_fit.py", TRAIN), tfrecords(tmp_path / "records", counts)
    args = SimpleNamespace(global_batch_size=8, seed=0)

    def seen(rank: int) -> list[int]:
        """The numbers of the pictures in a rank's batches; each picture with its own label."""
        examples, parse, count, _ = script.stream(files, rank, 2)
        seen_numbers = []
        for images, labels in script.batches(args, examples, parse, count, 2).take(20):
            pixels = images.numpy().reshape(4, 64).astype(int)
            seen_numbers += (256 * pixels[:, 0] + pixels[:, 1]).tolist()
            assert labels.numpy().tolist() == [number % 10 for number in seen_numbers[-4:]]
        return seen_numbers

    ranks = [seen(rank) for rank in (0, 1)]  # two epochs of 10 steps
    for epoch in (0, 40):
        assert sorted(ranks[0][epoch : epoch + 40] + ranks[1][epoch : epoch + 40]) == [*range(80)]
    assert ranks[0][:40] != ranks[0][40:] and ranks[0][:40] != sorted(ranks[0][:40])


@pytest.mark.soak  # lesson 09 streams and counts megabytes
def test_streaming_holds_little_in_memory_and_begins_at_once(tmp_path):
    tfrecords(tmp_path / "records", (1000, 1000), (32, 32, 3))
    flags = ["--times", 20, tmp_path / "records"]  # 125 MB
    command = [sys.executable, DEMOS / "read_tfrecord.py", *flags]
    ways = {record["how"]: record for record in finish(command, True, 120).events("read")}
    assert ways["stream"]["records"] == ways["whole"]["records"] == 40_000
    assert ways["stream"]["grown_megabytes"] < 100 < 125 < ways["whole"]["grown_megabytes"]
    assert ways["stream"]["seconds_to_first_batch"] < ways["whole"]["seconds_to_first_batch"]


def test_a_tfrecord_file_that_was_cut_off_is_an_error(tmp_path):
    [path] = tfrecords(tmp_path / "training", (4,))
    Path(path).write_bytes(Path(path).read_bytes()[:-5])
    examples, *_ = module("train_tf_fit.py", TRAIN).load(tmp_path / "training")
    with pytest.raises(Exception, match="truncated record"):
        list(examples)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--training", "nowhere"], "no part-*.npz in nowhere"),
        (["--global-batch-size", 2000], "no multiple of 1 up to 1437"),
    ],
)
def test_what_no_framework_tells_is_told(monkeypatch, digits, tmp_path, flags, message):
    script = module(ONE, TRAIN)
    threading = script.tf.config.threading
    monkeypatch.setattr(threading, "set_intra_op_parallelism_threads", lambda threads: None)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(word) for word in (ONE, *channels(digits), *flags)])
    with pytest.raises((SystemExit, AssertionError), match=re.escape(message)):
        script.main()


@pytest.mark.parametrize("name", ["train_tf_horovod.py", "train_tf_fit.py"])
def test_each_rank_takes_of_its_gpu_what_it_needs(monkeypatch, digits, name):
    needs_horovod()
    import horovod.tensorflow as hvd

    script, calls = module(name, TRAIN), []
    config = script.tf.config
    monkeypatch.setattr(hvd, "init", lambda: None)
    for value in ("rank", "local_rank"):
        monkeypatch.setattr(hvd, value, lambda: 1)
    monkeypatch.setattr(hvd, "size", lambda: 2)
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: ["GPU:0", "GPU:1"])
    monkeypatch.setattr(config, "set_visible_devices", lambda gpus, kind: calls.append(gpus))
    monkeypatch.setattr(config.threading, "set_intra_op_parallelism_threads", lambda threads: None)
    grow = "set_memory_growth"
    monkeypatch.setattr(config.experimental, grow, lambda gpu, on: calls.append((gpu, on)))
    words = [
        name,
        *channels(digits),
        "--global-batch-size",
        9999,
    ]  # too large: it ends before it trains
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    with pytest.raises(SystemExit, match="no multiple of 2"):
        script.main()
    assert calls == [["GPU:1"], ("GPU:1", True)]
