"""What the demonstrations share: arguments, data, epochs."""

import numpy as np
import pytest
from common.arguments import local_batch_size, parser_for, threads_per_rank
from common.data import epochs_and_steps, load_channel
from common.errors import ScriptError


def parse(*arguments, script="train_tf.py"):
    return parser_for(script, "What it does.\n").parse_args(arguments)


def test_sagemaker_variables_are_the_defaults(monkeypatch):
    for name in ("CHANNEL_TRAINING", "CHANNEL_TEST", "MODEL_DIR"):
        monkeypatch.setenv(f"SM_{name}", f"/somewhere/{name}")
    args = parse()
    folders = [str(path) for path in (args.training, args.test, args.save_to)]
    assert folders == [f"/somewhere/{n}" for n in ("CHANNEL_TRAINING", "CHANNEL_TEST", "MODEL_DIR")]


def test_flags(monkeypatch):
    monkeypatch.delenv("SM_MODEL_DIR", raising=False)
    args = parse("--model_dir", "s3://bucket/model", "--learning_rate", "0.5", "--max-steps", "3")
    assert (args.learning_rate, args.max_steps) == (0.5, 3)
    assert args.save_to.parts[-3:] == ("build", "model", "train_tf")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--learning-rat", "1"], "unrecognized arguments: --learning-rat"),
        (["--epochs", "0"], "argument --epochs: 0 given, at least 1 expected"),
        (["--epochs", "many"], "invalid int value: 'many'"),
        (["--learning-rate", "0"], "0 given, more than 0 expected"),
        (["--learning-rate", "nan"], "nan given, a finite number expected"),
        (["--seed", "-1"], "-1 given, at least 0 expected"),
        (["--save-to", f"{__file__}/model"], f"{__file__} is a file, a folder expected"),
    ],
)
def test_a_wrong_flag_is_told(capsys, wrong, message):
    with pytest.raises(SystemExit) as ended:
        parse(*wrong)
    assert ended.value.code == 2 and message in capsys.readouterr().err


def test_global_batch_is_split_evenly_or_not_at_all():
    assert local_batch_size(64, 4) == 16
    with pytest.raises(ScriptError, match="choose 63 or 66"):
        local_batch_size(64, 3)
    with pytest.raises(ScriptError, match=r"choose 4$"):
        local_batch_size(2, 4)


def test_threads_are_shared_by_the_ranks_of_a_machine(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    assert [threads_per_rank(0, ranks) for ranks in (1, 2, 3, 16)] == [8, 4, 2, 1]
    assert threads_per_rank(5, 16) == 5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--epochs", "2"], [(1, 22), (2, 22)]),  # 1437 examples: 29 are left over
        (["--max-steps", "30"], [(1, 22), (2, 8)]),
        (["--max-steps", "22"], [(1, 22)]),
        (["--epochs", "1", "--max-steps", "99"], [(1, 22)]),
    ],
)
def test_epochs_are_whole_global_batches(arguments, expected):
    assert list(epochs_and_steps(parse(*arguments), 1437)) == expected


def test_a_global_batch_larger_than_the_data_is_an_error():
    with pytest.raises(ScriptError, match="lower --global-batch-size"):
        list(epochs_and_steps(parse(), 63))


def test_a_channel_is_all_its_parts_in_order(digits):
    images, labels = load_channel(digits / "training")
    assert (images.shape, images.dtype) == ((1437, 8, 8, 1), np.uint8)
    assert (labels.shape, labels.dtype) == ((1437,), np.int64)
    assert images.max() == 255
    with np.load(digits / "training" / "part-00001.npz") as second:
        assert (labels[700:] == second["labels"]).all()


def test_a_channel_without_a_part_or_of_other_images_is_an_error(digits, tmp_path):
    with pytest.raises(ScriptError, match=r"no part-\*\.npz in .*: `python -m data_prep digits`"):
        load_channel(tmp_path)
    images = np.zeros((64, 9, 9, 1), np.uint8)
    with pytest.raises(ScriptError, match=r"images of \(8, 8, 1\), and .* are \(9, 9, 1\)"):
        load_channel(digits / "test", images)
