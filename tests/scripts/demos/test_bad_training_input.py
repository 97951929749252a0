"""Wrong flags and data: a demonstration that trains says in a line what to fix, saves nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from bad_inputs_helpers import REPOSITORY, Row, check

DEMOS = REPOSITORY / "scripts" / "demos"
SERVER = REPOSITORY / "tests" / "helpers" / "preloaded_server.py"
SECONDS = 120  # for one program, on a busy machine
IMAGES = np.random.default_rng(0).integers(0, 256, (64, 8, 8, 1), np.uint8)
LABELS = np.arange(64) % 10


def npz(images=IMAGES, labels=LABELS, **extra) -> bytes:
    """A part of a channel, as data_prep writes it, or nearly so."""
    stream = io.BytesIO()
    arrays = {"images": images, "labels": labels} | extra
    np.savez(stream, **{name: value for name, value in arrays.items() if value is not None})
    return stream.getvalue()


def channels(training: bytes | None = None, test: bytes | None = None, second_part: bytes = b""):
    """Puts the two channels into a row's folder. second_part: of the training channel."""

    def make(here: Path) -> None:
        for name, raw in (("training", training), ("test", test)):
            (here / name).mkdir()
            (here / name / "part-00000.npz").write_bytes(npz() if raw is None else raw)
        if second_part:
            (here / "training" / "part-00001.npz").write_bytes(second_part)

    return make


def changed_byte(raw: bytes) -> bytes:
    """Another pixel than the one that the file's own checksum was made of."""
    place = raw.index(IMAGES.tobytes()[:32]) + 5
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]


def header_of_many_bytes() -> bytes:
    """A file of 300 bytes whose header asks for 8 exabytes."""
    stream, header = io.BytesIO(), io.BytesIO()
    shape = "{'descr': '|u1', 'fortran_order': False, 'shape': (8000000000000000000,), }"
    header.write(np.lib.format.magic(1, 0) + len(shape).to_bytes(2, "little") + shape.encode())
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("images.npy", header.getvalue())
        archive.writestr("labels.npy", header.getvalue())
    return stream.getvalue()


def pickled() -> bytes:
    return npz(images=np.array([{"a": 1}], dtype=object))


def a_folder_for_a_part(here: Path) -> None:
    channels()(here)
    (here / "training" / "part-00000.npz").unlink()
    (here / "training" / "part-00000.npz").mkdir()


def a_file_in_the_way(here: Path) -> None:
    channels()(here)
    (here / "file").write_text("not a folder")


def torch_script(flags: str = "", script: str = "train_torch_links.py") -> str:
    places = "--training {here}/training --test {here}/test --save-to {here}/model"
    return f"{script} {places} {flags}".strip()


FLAGS = [
    Row(f"flag {flags}", torch_script(flags), words, make=channels())
    for flags, words in (
        ("--epochs 0", ("--epochs", "0 given, at least 1 expected")),
        ("--learning-rate 0", ("--learning-rate", "0 given, more than 0 expected")),
        ("--learning-rate nan", ("--learning-rate", "nan given, a finite number expected")),
        ("--seed -1", ("--seed", "-1 given, at least 0 expected")),
        ("--learnig-rate 1", ("unrecognized arguments: --learnig-rate 1",)),
    )
]
FLAGS += [
    Row(
        "no such mode of the parameter server",
        torch_script("--mode never", "parameter_server.py"),
        ("--mode", "'never'", "'sync', 'async'"),
        make=channels(),
    ),
    Row(
        "a pause that is no time",
        torch_script("--slow-ms -5", "parameter_server.py"),
        ("--slow-ms", "-5 given, at least 0 expected"),
        make=channels(),
    ),
    Row(
        "no such all-reduce",
        "measure_all_reduce.py --algorithms magic",
        ("--algorithms", "magic", "ring"),
    ),
]
UNUSABLE = ("{here}/training can't be used", "part-*.npz with images, uint8", "data_prep digits")
DATA = [
    Row(case, torch_script("--max-steps 1"), words, code=1, make=make)
    for case, make, words in (
        ("no channel at all", None, UNUSABLE),
        ("a file cut off", channels(npz()[:2000]), UNUSABLE),
        ("an empty file", channels(b""), UNUSABLE),
        ("a text", channels(b"label,pixel\n1,2\n"), UNUSABLE),
        ("a byte changed", channels(changed_byte(npz())), UNUSABLE),
        ("an archive without labels", channels(npz(labels=None)), UNUSABLE),
        ("objects in a pickle", channels(pickled()), UNUSABLE),
        ("a header of 8 exabytes", channels(header_of_many_bytes()), UNUSABLE),
        ("a folder for a part", a_folder_for_a_part, UNUSABLE),
        ("NaN in place of pixels", channels(npz(IMAGES / np.nan)), ("float64", *UNUSABLE)),
        ("a label too few", channels(npz(labels=LABELS[1:])), ("63 labels", *UNUSABLE)),
        ("a label above 9", channels(npz(labels=LABELS + 1)), ("labels up to 10", *UNUSABLE)),
        ("no examples", channels(npz(IMAGES[:0], LABELS[:0])), UNUSABLE),
        (
            "two sizes of images",
            channels(second_part=npz(np.zeros((64, 9, 9, 1), np.uint8))),
            UNUSABLE,
        ),
        (
            "a test of another size",
            channels(test=npz(np.zeros((64, 9, 9, 1), np.uint8))),
            ("{here}/test", "(9, 9, 1)", "(8, 8, 1)", "--test"),
        ),
    )
]
DATA += [
    Row(
        "a batch larger than the data",
        torch_script("--global-batch-size 65"),
        ("64 examples", "one global batch of 65", "lower --global-batch-size"),
        code=1,
        make=channels(),
    ),
    Row(
        "a model's folder that is a file",
        "train_torch_links.py --training {here}/training --test {here}/test --save-to {here}/file",
        ("--save-to", "{here}/file is a file, a folder expected"),
        make=a_file_in_the_way,
    ),
]


class Preloaded:
    """A process that has imported `modules`, and runs programs in forks of itself."""

    def __init__(self, *modules: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{DEMOS}"},
        )
        assert self.process.stdout.readline() == "ready\n"

    def run(self, argv: list[str], cwd: Path, env: dict[str, str]) -> tuple[int, str]:
        """Run a demonstration to its end; its exit status and what it said."""
        output, argv = cwd.parent.parent / "said.txt", [str(DEMOS / argv[0]), *argv[1:]]
        task = {"argv": argv, "cwd": str(cwd), "env": env, "said": str(output), "seconds": SECONDS}
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return code, output.read_text(errors="replace")

    def close(self) -> None:
        self.process.stdin.close()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def preloaded():
    programs = Preloaded("torch", "torch.utils.data", "torch.distributed", "torch._dynamo")
    yield programs
    programs.close()


@pytest.mark.parametrize("row", [*FLAGS, *DATA], ids=lambda row: row.name.replace(" ", "-"))
def test_training_that_is_refused(row, preloaded, tmp_path):
    check(row, preloaded.run, tmp_path)


def test_the_same_row_with_right_input_trains(preloaded, tmp_path):
    """Else every row above could be refused for a reason of its own making."""
    command = torch_script("--max-steps 1")
    right = Row("right", command, ("weights_sha256",), 0, channels(), writes=("model",))
    check(right, preloaded.run, tmp_path)
    assert (tmp_path / "around" / "here" / "model" / "model.pt").is_file()
