"""Run the training scripts as a learner does: as processes, on small real data."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "scripts"
DEMOS = SCRIPTS / "demos"
sys.path.insert(0, str(DEMOS))

BIN = Path(sys.executable).parent
TEN_STEPS = ["--max-steps", "10", "--log-every", "0"]
LAUNCHER = SCRIPTS / "launch" / "local_tf_cluster.py"


def mpirun(ranks: int) -> list[str]:
    """The start of a command that runs `ranks` processes on this machine."""
    return [
        str(BIN / "mpirun"),
        *("--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks)),
        sys.executable,
    ]


def torchrun(ranks: int) -> list[str]:
    """The start of a command that runs `ranks` processes under torchrun, on a free port."""
    options = ["--standalone", "--nproc_per_node", str(ranks)]
    return [sys.executable, "-m", "torch.distributed.run", *options]


def needs_horovod() -> None:
    """Skip the calling test, or module, where Horovod or its mpirun is not installed."""
    if importlib.util.find_spec("horovod") is None:
        pytest.skip("Horovod is not installed (see requirements/)", allow_module_level=True)
    if not (BIN / "mpirun").exists():
        pytest.skip(f"no mpirun beside {sys.executable}", allow_module_level=True)


@dataclass
class Run:
    """What a finished command printed, as text and as its JSON lines."""

    code: int
    stdout: str
    stderr: str

    def events(self, kind: str) -> list[dict]:
        lines = [line for line in self.stdout.splitlines() if line.startswith("{")]
        return [record for record in map(json.loads, lines) if record["event"] == kind]

    @property
    def accuracy(self) -> float:
        return self.events("epoch")[-1]["test_accuracy"]

    @property
    def hashes(self) -> dict[int, str]:
        return {e["rank"]: e["weights_sha256"] for e in self.events("weights")}


def script_env(digits: Path, save_to: Path, **more: str) -> dict[str, str]:
    """The variables SageMaker would set, and nothing left of another launcher."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SM_", "TF_CONFIG", "OMPI_"))}
    env.update(
        SM_CHANNEL_TRAINING=str(digits / "training"),
        SM_CHANNEL_TEST=str(digits / "test"),
        SM_MODEL_DIR=str(save_to),
        **more,
    )
    return env


@pytest.fixture(scope="session")
def digits(tmp_path_factory) -> Path:
    """The real digits as two channels, one of them in two parts, as data_prep writes them."""
    from sklearn.datasets import load_digits  # slow: not for all who collect tests

    data = load_digits()
    images = (data.images.astype(np.int64) * 255 // 16).astype(np.uint8)[..., None]
    order = np.random.default_rng(0).permutation(len(images))
    folder = tmp_path_factory.mktemp("digits")
    parts = {
        "training/part-00000.npz": order[:700],
        "training/part-00001.npz": order[700:1437],
        "test/part-00000.npz": order[1437:],
    }
    for name, rows in parts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        np.savez(folder / name, images=images[rows], labels=data.target[rows].astype(np.int64))
    return folder


@pytest.fixture
def run(digits, tmp_path):
    """Run a command to its end; fail the test if it fails, unless check=False."""

    def run(*command, check=True, timeout=120, **env) -> Run:
        done = subprocess.run(
            [str(part) for part in command],
            env=script_env(digits, tmp_path / "model", **env),
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        if check and done.returncode:
            pytest.fail(f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return Run(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def ten_steps(digits, common_folder) -> list[np.ndarray]:
    """The weights of scripts/train/train_torch.py after ten steps, to compare demonstrations with.

    Trained once for all tests and all workers.
    """
    import torch

    folder = common_folder / "ten-steps"
    folder.mkdir(exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "model.pt").exists():
            command = [sys.executable, SCRIPTS / "train" / "train_torch.py", *TEN_STEPS]
            subprocess.run(command, env=script_env(digits, folder), check=True)
    saved = torch.load(folder / "model.pt", weights_only=True)["state_dict"]
    return [value.numpy() for value in saved.values()]


def check_equals(reference: list, folder: Path, ranks: int, tolerance: float) -> None:
    """The ranks' weights are the same to the last bit, and the reference's within `tolerance`."""
    first = weights(folder, 0)
    for rank in range(1, ranks):
        assert largest_difference(first, weights(folder, rank)) == 0, f"rank {rank} differs"
    assert largest_difference(reference, first) <= tolerance


def weights(folder: Path, rank: int = 0) -> list[np.ndarray]:
    """The weights that --dump-weights wrote."""
    with np.load(folder / f"rank-{rank}.npz") as saved:
        return [saved[name] for name in sorted(saved.files)]


def largest_difference(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest absolute difference of any weight."""
    assert [w.shape for w in one] == [w.shape for w in other]
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))
