"""What an instance finds in its channels, whatever they are called."""

import json

import numpy as np
from script_harness import DEMOS


def test_each_channel_is_described_with_its_variable(run, tmp_path):
    for name, counts in {"train": (3, 2), "my_words": ()}.items():
        (tmp_path / name).mkdir()
        for at, count in enumerate(counts):
            images, labels = np.zeros((count, 4, 4, 1), np.uint8), np.arange(count)
            np.savez(tmp_path / name / f"part-{at:05d}.npz", images=images, labels=labels)
    (tmp_path / "my_words" / "part-00000.tfrecord").write_bytes(b"")
    env = {
        "SM_CHANNELS": json.dumps(["train", "my_words"]),
        "SM_CHANNEL_TRAIN": str(tmp_path / "train"),
        "SM_CHANNEL_MY_WORDS": str(tmp_path / "my_words"),
    }
    words, train = run("python", DEMOS / "look_at_channels.py", **env).events("channel")
    assert words["files"] == ["part-00000.tfrecord"] and words["images"] == 0
    assert train["variable"] == "SM_CHANNEL_TRAIN" and train["world_size"] == "not told"
    assert len(train["files"]) == 2 and train["images"] == 5 and train["classes"] == 3


def test_without_a_channel_it_says_so(run):
    done = run("python", DEMOS / "look_at_channels.py", check=False)
    assert done.code == 1 and "SM_CHANNELS is empty" in done.stderr
