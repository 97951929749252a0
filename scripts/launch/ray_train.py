"""Start train_torch_ddp.py on the workers of a Ray cluster (TorchTrainer), or on this machine's.

    pip install "ray[train]"
    python ray_train.py --workers 2 /shared/train_torch_ddp.py --training /shared/digits/training \\
        --test /shared/digits/test --save-to /shared/model

Workers run in folders of their own: give whole paths, which every machine of the cluster knows.

RUN: with Ray 2.60.0 and 2 workers on the CPUs of one machine: the weights of torchrun (`make ray`).
"""

import argparse
import runpy
import sys
from pathlib import Path

import torch.distributed as dist
from ray.train import ScalingConfig
from ray.train.torch import TorchTrainer


def train(config):
    """Be one rank. Ray has set RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT."""
    dist.destroy_process_group()  # Ray's own: the script makes one from the same variables
    sys.argv = [config["script"], *config["flags"]]
    runpy.run_path(config["script"])["main"]()


def main():
    """Start the workers and wait for them; fails if one of them fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--gpu", action="store_true", help="a GPU for each worker")
    parser.add_argument("script")
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="the script's own")
    args = parser.parse_args()
    scaling = ScalingConfig(num_workers=args.workers, use_gpu=args.gpu)
    config = {"script": str(Path(args.script).resolve()), "flags": args.flags}
    TorchTrainer(train, train_loop_config=config, scaling_config=scaling).fit()


if __name__ == "__main__":
    main()
