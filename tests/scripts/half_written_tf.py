"""Which checkpoint of TensorFlow's is loaded when the newest is not whole: prints its weight."""

import json
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from common.checkpoint_tf import Checkpoints
from common.keras2 import tf
from common.report import Report


class Weights(tf.Module):
    """Stands for a model, and for an optimizer: something with variables."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(0.0)


class Args:
    """The arguments that checkpoints need."""

    global_batch_size = learning_rate = seed = hidden_units = log_every = 0
    checkpoint_every = 10


def train(folder: Path, steps: int) -> float:
    """Train on steps that set the weight to their number; the weight at the beginning."""
    Args.checkpoint_dir = folder
    model, report = Weights(), Report(Args, [])
    kept = Checkpoints(Args, model, Weights(), report)
    begun_with = float(model.weight)
    for step in kept.batches(range(1, 1000), 1, steps):
        report.step(0.0)
        model.weight.assign(float(step))
    return begun_with


def show(folder: Path, what: str) -> None:
    print(json.dumps({"weight": train(folder, 0), "of": what}))


here = Path(sys.argv[1])
train(here / "whole", 35)
kept = sorted(path.name for path in (here / "whole").iterdir())
assert [name for name in kept if name.endswith(".index")] == ["step-20.index", "step-30.index"], (
    kept
)
show(here / "whole", "whole")

cut = Path(shutil.copytree(here / "whole", here / "cut"))
(cut / "step-40.data-00000-of-00001").write_bytes(b"x")
show(cut, "killed before the list was written")
(cut / "step-30.index").unlink()
show(cut, "index not there")

cut = Path(shutil.copytree(here / "whole", here / "damaged"))
data = cut / "step-30.data-00000-of-00001"
data.write_bytes(data.read_bytes()[:-1] + b"\xff")
show(cut, "damaged data")
