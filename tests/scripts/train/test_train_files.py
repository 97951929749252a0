"""The files of scripts/train as texts: each complete, and its copied functions the same."""

import ast
import socket
import sys
import time

import pytest
from script_harness import TRAIN

FILES = sorted(path.name for path in TRAIN.glob("*.py"))
FRAMEWORKS = {"tensorflow", "horovod", "torch", "smdistributed"}
# Functions that are tested in one file, and are the same to the letter in the others.
TORCH = [name for name in FILES if name.startswith("train_torch")]
SAME = {
    ("load", "train_torch.py"): TORCH,
    ("emit", "train_torch.py"): [name for name in FILES if name != "inference.py"],
    ("Residual", "train_torch_fsdp.py"): ["inference.py"],
    ("Classifier", "train_torch_fsdp.py"): ["inference.py"],
    ("Classifier", "train_torch.py"): ["train_torch_ddp.py"],
    ("save_checkpoint", "train_torch.py"): ["train_torch_ddp.py"],
    ("all_reduce_mean", "train_torch_ddp.py"): ["train_torch_fsdp.py"],
    ("listens", "train_tf_ps.py"): ["train_tf_mirrored.py"],
}


def functions(name: str) -> dict[str, str]:
    tree = ast.parse((TRAIN / name).read_text())
    return {part.name: ast.unparse(part) for part in tree.body if hasattr(part, "name")}


@pytest.mark.parametrize(("function", "like"), SAME)
def test_what_is_tested_in_one_file_is_the_same_in_others(function, like):
    text = functions(like)[function]
    assert {name for name in SAME[function, like] if functions(name)[function] != text} == set()


@pytest.mark.parametrize("name", FILES)
def test_needs_nothing_but_its_framework_and_numpy(name):
    imported = set()
    for node in ast.walk(ast.parse((TRAIN / name).read_text(), feature_version=(3, 9))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add((node.module or "").split(".")[0])
    assert imported - FRAMEWORKS - {"numpy"} <= sys.stdlib_module_names


def test_a_host_that_answers_nothing_is_not_waited_for():
    """Where an instance has been given back, a connection isn't refused: nobody answers at all."""
    scope = {"socket": socket}
    exec(functions("train_tf_ps.py")["listens"], scope)  # importing it would import TensorFlow
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        assert scope["listens"](*server.getsockname())
        waiting = [socket.socket() for _ in range(8)]  # more than the queue holds: then silence
        for client in waiting:
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        began = time.monotonic()
        assert not scope["listens"](*server.getsockname())
        assert time.monotonic() - began < 60  # unbounded, TCP gives up after 127 s
        for client in waiting:
            client.close()
