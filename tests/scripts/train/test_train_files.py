"""The files of scripts/train as texts: each complete, and little different from another."""

import ast
import difflib
import socket
import sys
import time

import pytest
from script_harness import TRAIN

FILES = sorted(path.name for path in TRAIN.glob("*.py"))
FRAMEWORKS = {"tensorflow", "horovod", "torch", "smdistributed"}
# file -> the file it is to be read beside, and the most lines that it may add to it.
DIFFS = {
    "train_torch_dp.py": ("train_torch.py", 13),
    "train_torch_ddp.py": ("train_torch.py", 85),
    "train_torch_smddp.py": ("train_torch_ddp.py", 19),
    "train_torch_ddp_options.py": ("train_torch_ddp.py", 21),
    "train_torch_fsdp.py": ("train_torch_ddp.py", 28),
    "train_tf_horovod.py": ("train_tf.py", 25),
    "train_tf_mirrored.py": ("train_tf.py", 35),
    "train_tf_multiworker.py": ("train_tf.py", 80),
    "train_tf_ps.py": ("train_tf.py", 107),
}
# Functions that are tested in one file, and are the same to the letter in the others.
TORCH = [name for name in FILES if name.startswith("train_torch")]
SAME = {
    ("load", "train_torch.py"): TORCH,
    ("Residual", "train_torch.py"): [*TORCH, "inference.py"],
    ("Classifier", "train_torch.py"): [*TORCH, "inference.py"],
    ("save_checkpoint", "train_torch.py"): ["train_torch_dp.py"],
    ("resume", "train_torch.py"): ["train_torch_dp.py"],
    ("save_checkpoint", "train_torch_ddp.py"): [
        "train_torch_smddp.py",
        "train_torch_ddp_options.py",
    ],
    ("resume", "train_torch_ddp.py"): ["train_torch_smddp.py", "train_torch_ddp_options.py"],
    ("set_up", "train_tf.py"): [name for name in FILES if name.startswith("train_tf")],
    ("resume", "train_tf.py"): [
        "train_tf_horovod.py",
        "train_tf_multiworker.py",
        "train_tf_mirrored.py",
        "train_tf_fit.py",
    ],
}


def functions(name: str) -> dict[str, str]:
    tree = ast.parse((TRAIN / name).read_text())
    return {part.name: ast.unparse(part) for part in tree.body if hasattr(part, "name")}


@pytest.mark.parametrize(("function", "like"), SAME)
def test_what_is_tested_in_one_file_is_the_same_in_others(function, like):
    def of(name):
        return functions(name)[function].replace("'resumed', 0,", "'resumed',")  # emit takes a rank

    assert {name for name in SAME[function, like] if of(name) != of(like)} == set()


@pytest.mark.parametrize("name", DIFFS)
def test_a_way_adds_few_lines(name):
    like, most = DIFFS[name]
    one, other = ((TRAIN / file).read_text().splitlines() for file in (like, name))
    added = [line for line in difflib.ndiff(one, other) if line.startswith("+ ")]
    assert len(added) <= most


@pytest.mark.parametrize("name", FILES)
def test_needs_nothing_but_its_framework_and_numpy(name):
    imported = set()
    for node in ast.walk(ast.parse((TRAIN / name).read_text(), feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported - FRAMEWORKS - {"numpy"} <= sys.stdlib_module_names


def test_every_file_stands_beside_another():
    others = {"train_torch.py", "train_tf.py", "train_tf_fit.py", "inference.py"}
    assert set(FILES) == DIFFS.keys() | others


@pytest.mark.parametrize("name", ["train_tf_ps.py", "train_tf_multiworker.py"])
def test_a_host_that_answers_nothing_is_not_waited_for(name):
    """Where an instance has been given back, a connection isn't refused: nobody answers at all."""
    scope = {"socket": socket}
    exec(functions(name)["listens"], scope)  # importing the file would import TensorFlow
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
