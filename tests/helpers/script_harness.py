"""Run the training scripts as a learner does: as processes, on small real data."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parents[1] / "scripts"
DEMOS, TRAIN = SCRIPTS / "demos", SCRIPTS / "train"
sys.path.insert(0, str(DEMOS))

BIN = Path(sys.executable).parent
TEN_STEPS = ["--max-steps", "10", "--log-every", "0"]
LAUNCHER = SCRIPTS / "launch" / "local_tf_cluster.py"
OTHERS = ("SM_", "OMPI_", "TF_CONFIG", "PYTHONPATH", "RANK", "WORLD_SIZE", "MASTER_")
# A copied script must do without them. Keras imports some where it finds them: a fifth of its time.
ABSENT = ("matplotlib", "pandas", "scipy", "sklearn")


def alone() -> list[str]:
    """The start of a command that runs one process."""
    return [sys.executable]


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


# What torchrun does for ranks that succeed. PyTorch is loaded once, not by each rank anew.
START = """
import os, runpy, sys
count, port, *words = sys.argv[1:]
os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
os.environ |= {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
import torch.distributed
started = []
for rank in map(str, range(int(count))):
    if pid := os.fork():
        started.append(pid)
        continue
    os.environ |= {"RANK": rank, "LOCAL_RANK": rank}
    sys.argv, sys.path[0] = words, os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")
    sys.exit()
statuses = [os.waitpid(pid, 0)[1] for pid in started]
sys.exit(max(abs(os.waitstatus_to_exitcode(status)) for status in statuses))
"""


def by_hand(ranks: int) -> list[str]:
    """The start of a command that runs `ranks` processes with torchrun's variables."""
    return [sys.executable, "-c", START, str(ranks), free_port()]


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return str(server.getsockname()[1])


def needs_horovod() -> None:
    """Skip the calling test, or module, where Horovod or its mpirun is not installed."""
    if importlib.util.find_spec("horovod") is None:
        pytest.skip("Horovod is not installed (see tools/requirements/)", allow_module_level=True)
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


def finish(command: list, check: bool, timeout: float, **options) -> Run:
    """Run a command to its end; with `check`, fail the test if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout, **options)
    if check and done.returncode:
        pytest.fail(f"status {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return Run(done.returncode, done.stdout, done.stderr)


def replaced(text: str, edits: Iterable[tuple[str, str]]) -> str:
    """The text with others in the place of these, each of which occurs once."""
    for old, new in edits:
        assert text.count(old) == 1, f"this is there {text.count(old)} times: {old}"
        text = text.replace(old, new)
    return text


def copied(name: str, folder: Path, *edits: tuple[str, str]) -> Path:
    """Copy scripts/train/NAME alone into `folder`, with texts replaced; each occurs once."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(replaced((TRAIN / name).read_text(), edits))
    return folder / name


def start(
    command: list, script: Path, *flags, check: bool = True, timeout: float = 240, **env: str
) -> Run:
    """Run a copied script to its end, in its folder, with one thread a rank.

    command: what starts it, such as torchrun(2). env: variables beside the environment's own,
    of which nothing of a launcher or of this project is left.
    """
    absent = script.parent / "absent"
    absent.mkdir(exist_ok=True)
    for module in ABSENT:
        (absent / f"{module}.py").write_text(f"raise ModuleNotFoundError({module!r})\n")
    env_without = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    env_without["PYTHONPATH"] = str(absent)
    words = [*command, script.name, "--threads-per-rank", "1", *flags]
    return finish(words, check, timeout, cwd=script.parent, env=env_without | env)


def dies(step: int, condition: str) -> tuple[str, str]:
    """An edit of a copied script: where the condition holds, it is killed after that step."""
    count, indent = "            step += 1\n", " " * 16
    kill = f"            if step == {step} and {condition}:\n{indent}os.kill(os.getpid(), 9)\n"
    return count, count + kill


def channels(digits: Path) -> list:
    """The flags that name the two channels of a data set."""
    return ["--training", digits / "training", "--test", digits / "test"]


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
    """Run a command to its end with SageMaker's variables, and nothing left of another launcher."""

    def run(*command, check=True, timeout=120, **env) -> Run:
        others = ("SM_", "TF_CONFIG", "OMPI_")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(others)
        }
        ours = {
            "SM_CHANNEL_TRAINING": str(digits / "training"),
            "SM_CHANNEL_TEST": str(digits / "test"),
            "SM_MODEL_DIR": str(tmp_path / "model"),
        }
        return finish(command, check, timeout, env=inherited | ours | env)

    return run


@pytest.fixture(scope="session")
def ten_steps(digits, common_folder) -> list[np.ndarray]:
    """The weights of scripts/train/train_torch.py after ten steps, to compare demonstrations with.

    Trained once for all tests and all workers.
    """
    folder = common_folder / "ten-steps"
    with FileLock(f"{folder}.lock"):
        if not (folder / "model" / "model.pt").exists():
            script = copied("train_torch.py", folder)
            start(alone(), script, *TEN_STEPS, *channels(digits))
    return list(weights(folder).values())


def largest_difference(first: list[np.ndarray], other: list[np.ndarray]) -> float:
    """The largest absolute difference of any weight."""
    assert [w.shape for w in first] == [w.shape for w in other]
    return max(float(np.abs(a - b).max()) for a, b in zip(first, other, strict=True))


def weights(folder: Path) -> dict[str, np.ndarray]:
    """The weights of a saved model."""
    import torch

    state = torch.load(folder / "model" / "model.pt", weights_only=True)["state_dict"]
    return {name: value.numpy() for name, value in state.items()}


def difference(first: Path, other: Path, weights_of=weights) -> float:
    """The largest difference of any weight of two saved models, which `weights_of` reads."""
    first, second = weights_of(first), weights_of(other)
    assert first.keys() == second.keys()
    return max(float(np.abs(first[name] - second[name]).max()) for name in first)


def module(name: str, folder: Path):
    """A script as a module of this process, where torch is loaded already."""
    spec = importlib.util.spec_from_file_location(f"copied_{Path(name).stem}", folder / name)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded
