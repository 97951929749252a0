"""train_torch_ddp.py without DDP's all-reduce: every rank trains a model of its own."""

import runpy
import sys
from pathlib import Path

import torch.nn.parallel

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))


class Alone(torch.nn.Module):
    """Where DDP was: the model, and nobody's gradients but this rank's."""

    def __init__(self, module, *args, **kwargs):
        super().__init__()
        self.module = module

    def forward(self, images):
        return self.module(images)


torch.nn.parallel.DistributedDataParallel = Alone
runpy.run_path(str(SCRIPTS / "train_torch_ddp.py"), run_name="__main__")
