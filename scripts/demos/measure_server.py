"""Measure what a parameter server's link costs: a step with 1, 2, ... workers, beside a ring.

    torchrun --standalone --nproc_per_node 5 scripts/demos/measure_server.py --workers 1,2,4

SageMaker: entry_point="measure_server.py", source_dir="scripts/demos", instance_count=5,
distribution={"mpi": {"enabled": True, "processes_per_host": 1}}. Nothing is trained: a worker
answers the weights at once with a gradient of zeros, so all time is the server's and its link's.
Rank 0, the server, prints a JSON line for each round and number of workers:

    {"event": "server", "workers": 4, "bytes": 1000000, "step": 0.33, "passed": 8e6, "ring": 0.06}

bytes: of the weights. step: seconds of a step in sync mode. passed: bytes in and out of the server
in it. ring: seconds of a ring all-reduce of as many bytes among as many ranks, without the server.
"""

import argparse
import random
import time

import torch
import torch.distributed as dist

from collectives import ring, timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, plain_parser
from common.errors import ScriptError, run_main
from common.ranks_torch import cleanup, init_distributed
from parameter_server import Server, answer, serve_sync


def arguments() -> argparse.Namespace:
    """Read the flags."""
    parser = plain_parser(__doc__)
    count = number(int, 1)
    add_flag(parser, "--workers", type=list_of(count, "counts"), default="1,2,4")
    add_flag(parser, "--bytes", type=count, default=1_000_000, help="of float32 weights")
    add_flag(parser, "--steps", type=count, default=2, help="in a row, in each measurement")
    add_flag(parser, "--rounds", type=count, default=5, help="measurements of each")
    return parser.parse_args()


def main() -> None:
    """Join the ranks and measure; rounds in random order, the same on every rank."""
    args = arguments()
    init_distributed("gloo")
    torch.set_num_threads(1)
    others = dist.get_world_size() - 1
    if max(args.workers) > others:
        raise ScriptError(
            f"{others + 1} ranks are a server and {others} workers, not {max(args.workers)}: "
            "choose fewer --workers, or start more ranks"
        )
    groups = {workers: dist.new_group(range(1, workers + 1)) for workers in args.workers}
    order = random.Random(0)
    for measured in range(args.rounds + 1):
        for workers in order.sample(args.workers, len(args.workers)):
            n_bytes = args.bytes if measured else args.bytes // 10  # first: opens the connections
            step, passed = server_step(workers, n_bytes, args.steps)
            in_ring = ring_seconds(workers, n_bytes, args.steps, groups[workers])
            if measured:
                record = {"step": round(step, 6), "passed": passed, "ring": round(in_ring, 6)}
                say(event="server", workers=workers, bytes=args.bytes, **record)
    cleanup()


def server_step(workers: int, n_bytes: int, steps: int) -> tuple[float, float]:
    """(seconds, bytes in and out of the server) of a step; on ranks that are not it, zeros.

    Up to the last gradient: the weights that go out after it are counted in neither.
    """
    rank = dist.get_rank()
    dist.barrier()
    if rank == 0:
        server = Server(torch.zeros(n_bytes // 4), 0.1, steps * workers)
        serve_sync(server, list(range(1, workers + 1)), steps)
        *_, seconds = server.pushes[-1]
        last_weights = server.bytes_out / (steps + 1)
        return seconds / steps, (server.bytes_in + server.bytes_out - last_weights) / steps
    if rank <= workers:
        answer(torch.zeros(n_bytes // 4 + 1))
    return 0.0, 0.0


def ring_seconds(workers: int, n_bytes: int, calls: int, group) -> float:
    """Seconds of a ring all-reduce among the workers, the slowest's; the same on all ranks."""
    tensor, rank = torch.zeros(n_bytes // 4), dist.get_rank()
    dist.barrier()
    began = time.perf_counter()
    if 1 <= rank <= workers:
        for _ in range(calls):
            ring.all_reduce(tensor, group)
    return timing.slowest([(time.perf_counter() - began) / calls])[0]


if __name__ == "__main__":
    run_main(main)
