"""Run a file of scripts/train as a stranger does: copied alone into an empty folder."""

import difflib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from script_harness import Run

TRAIN = Path(__file__).resolve().parents[2] / "scripts" / "train"
OTHERS = ("SM_", "OMPI_", "TF_CONFIG", "PYTHONPATH", "RANK", "WORLD_SIZE", "MASTER_")


def copied(name: str, folder: Path, *edits: tuple[str, str]) -> Path:
    """Copy scripts/train/NAME alone into `folder`, with texts replaced; each occurs once."""
    text = (TRAIN / name).read_text()
    for old, new in edits:
        assert text.count(old) == 1, f"{name} has this {text.count(old)} times: {old}"
        text = text.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


def start(
    command: list, script: Path, *flags, check: bool = True, timeout: float = 240, **env: str
) -> Run:
    """Run a copied script to its end, in its folder, with one thread a rank.

    command: what starts it, such as torchrun(2). env: variables beside the environment's own,
    of which nothing of a launcher or of this project is left.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    words = [*command, script.name, "--threads-per-rank", "1", *flags]
    done = subprocess.run(
        [str(word) for word in words],
        cwd=script.parent,
        env=kept | env,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if check and done.returncode:
        pytest.fail(f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return Run(done.returncode, done.stdout, done.stderr)


def alone() -> list[str]:
    """The start of a command that runs one process."""
    return [sys.executable]


def channels(digits: Path) -> list:
    """The flags that name the two channels of a data set."""
    return ["--training", digits / "training", "--test", digits / "test"]


def pictures(folder: Path, shape: tuple[int, ...], examples: int) -> Path:
    """Two channels of generated images in which a bright row tells the class; return `folder`."""
    random = np.random.default_rng(0)
    for channel in ("training", "test"):
        labels = random.integers(0, 10, examples)
        images = random.integers(0, 100, (examples, *shape), dtype=np.uint8)
        images[np.arange(examples), labels % shape[0]] += 150
        (folder / channel).mkdir(parents=True)
        np.savez(folder / channel / "part-00000.npz", images=images, labels=labels)
    return folder


def changed(one: str, other: str) -> tuple[int, int]:
    """How many lines the second file has that the first has not, and the other way round."""
    texts = [(TRAIN / name).read_text().splitlines() for name in (one, other)]
    marks = [line[:1] for line in difflib.unified_diff(*texts, n=0, lineterm="")][2:]
    return marks.count("+"), marks.count("-")
