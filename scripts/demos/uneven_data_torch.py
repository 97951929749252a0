"""Ranks with unequally many batches: what hangs, and what helps. Try it: it takes seconds.

    torchrun --standalone --nproc_per_node 2 uneven_data_torch.py --how hang
    torchrun --standalone --nproc_per_node 2 uneven_data_torch.py --how join

Rank 0 has 3 batches of 4 examples, every other rank 5: 12 and 20 rows of a stream, for example.

hang  Rank 0 is ready after step 3 and calls something else. The others wait in backward(), for
      gradients that it never sends; here for 5 seconds, by default for 30 minutes.
join  `with parallel_model.join():` lets a rank that is ready go on answering the others'
      all-reduces with zeros. The sum is still divided by all ranks, so the last steps are small
      ones; join(divide_by_initial_world_size=False) divides by those that have data.

A DistributedSampler avoids it all, where the examples are known in advance: it deals them out in
equal parts.
"""

import argparse
import json
import os
import sys
from contextlib import nullcontext
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

BATCH = 4


def emit(event, **record):
    """Print one JSON line."""
    sys.stdout.write(json.dumps({"event": event, "rank": dist.get_rank(), **record}) + "\n")
    sys.stdout.flush()


def own_batches(rank):
    """Return the batches of this rank's own stream."""
    rows = 12 if rank == 0 else 20  # rows that this rank happens to hold
    return DataLoader(TensorDataset(torch.full((rows, 1), float(rank + 1))), BATCH)


def main():
    """Train a step for each of this rank's batches, and say how it ended."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--how", choices=["hang", "join"], default="hang")
    parser.add_argument("--timeout", type=float, default=5, help="seconds; torch's own: 1800")
    args = parser.parse_args()
    dist.init_process_group("gloo", timeout=timedelta(seconds=args.timeout))
    rank = dist.get_rank()

    parallel_model = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    optimizer = torch.optim.SGD(parallel_model.parameters(), 0.01)
    step = 0
    try:
        with parallel_model.join() if args.how == "join" else nullcontext():
            for (batch,) in own_batches(rank):
                optimizer.zero_grad()
                parallel_model(batch).sum().backward()
                optimizer.step()
                step += 1
                gradient = next(parallel_model.parameters()).grad.item()
                emit("step", step=step, gradient=gradient)
        if args.how == "hang" and rank == 0:
            dist.monitored_barrier(timeout=timedelta(seconds=2 * args.timeout))
    except RuntimeError as error:  # the others' timeout, or that a rank has gone
        emit("hung", step=step, reason=str(error).splitlines()[0])
        os._exit(1)  # a group in which a rank gave up cannot be left in order
    emit("done", step=step, weight=next(parallel_model.parameters()).item())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
