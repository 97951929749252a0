"""Measure what tensor fusion saves: an all-reduce of many tensors, with it and without.

    mpirun -np 2 python scripts/demos/measure_fusion.py --tensors 84 --bytes 423464

Horovod reads HOROVOD_FUSION_THRESHOLD when it starts, so it is started anew for each measurement:
with its default ("fused"), with the default once more ("fused again": what lies between the two is
noise) and with 0 ("unfused"), in another order in each round. Rank 0 prints a JSON line for each
round, in seconds for all tensors together, on the slowest rank:

    {"event": "fusion", "tensors": 84, "fused": 0.002, "fused again": 0.002, "unfused": 0.02}
"""

import argparse
import os
import random
import time
from collections.abc import Callable

from common.keras2 import tf  # before Horovod

# isort: split
import horovod.tensorflow as hvd
from mpi4py import MPI  # it starts MPI, so that Horovod doesn't end MPI in hvd.shutdown

from common.arguments import add_flag, number
from common.errors import run_main
from common.report import emit

THRESHOLD = "HOROVOD_FUSION_THRESHOLD"
SETTINGS = {"fused": None, "fused again": None, "unfused": "0"}  # None: Horovod's default
FLOAT_BYTES = 4
WARM_UP = 3


def main() -> None:
    """Measure the settings in rounds; the first, which warms up, is not counted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    positive = number(int, 1)
    add_flag(parser, "--tensors", type=positive, default=84, help="how many are all-reduced")
    add_flag(parser, "--bytes", type=positive, default=423_464, help="of all of them together")
    add_flag(parser, "--calls", type=positive, default=20, help="in one measurement")
    add_flag(parser, "--rounds", type=positive, default=7, help="measurements of each")
    args = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tensors = [tf.ones(max(1, args.bytes // FLOAT_BYTES // args.tensors))] * args.tensors
    reduce_all = all_reduce_of(tensors)
    shuffled = random.Random(0)  # the same order on every rank
    order = list(SETTINGS)
    for round_number in range(args.rounds + 1):
        shuffled.shuffle(order)
        seconds = {name: measure(reduce_all, SETTINGS[name], args.calls) for name in order}
        slowest = {
            name: round(MPI.COMM_WORLD.allreduce(seconds[name], MPI.MAX), 6) for name in SETTINGS
        }
        if round_number and MPI.COMM_WORLD.rank == 0:
            emit(event="fusion", tensors=args.tensors, **slowest)


def all_reduce_of(tensors: list[tf.Tensor]) -> Callable[[], list[tf.Tensor]]:
    """Return a function that averages the tensors over all ranks, one by one, at once."""

    @tf.function(autograph=False)
    def reduce_all(tensors):
        return [hvd.allreduce(tensor, name=f"tensor_{at}") for at, tensor in enumerate(tensors)]

    return lambda: reduce_all(tensors)  # as an argument: of constants there is only one all-reduce


def measure(reduce_all: Callable[[], list[tf.Tensor]], threshold: str | None, calls: int) -> float:
    """Start Horovod with this threshold, in bytes, and time a call on this rank, in seconds."""
    os.environ.pop(THRESHOLD, None)
    if threshold is not None:
        os.environ[THRESHOLD] = threshold
    hvd.init()
    for _ in range(WARM_UP):
        reduce_all()
    MPI.COMM_WORLD.Barrier()
    began = time.perf_counter()
    for _ in range(calls):
        for tensor in reduce_all():
            tensor.numpy()  # wait until it has arrived
    seconds = (time.perf_counter() - began) / calls
    hvd.shutdown()
    return seconds


if __name__ == "__main__":
    run_main(main)
