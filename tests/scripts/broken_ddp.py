"""train_torch_ddp.py without DDP's all-reduce: every rank trains a model of its own."""

import runpy
import sys
from pathlib import Path

import torch.nn.parallel

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

torch.nn.parallel.DistributedDataParallel = lambda model, *args, **kwargs: model
runpy.run_path(str(SCRIPTS / "train_torch_ddp.py"), run_name="__main__")
