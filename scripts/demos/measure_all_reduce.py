"""Measure a job's links, intra-node and inter-node, and what all-reduces take on them.

    mpirun -np 4 python scripts/demos/measure_all_reduce.py --algorithms gloo,ring --bytes 1048576

SageMaker: entry_point="measure_all_reduce.py", source_dir="scripts/demos", instance_count=2,
distribution={"mpi": {"enabled": True, "processes_per_host": 4}}. Rank 0 prints JSON lines:

    {"event": "placement", "instances": 2, "ranks_per_instance": 4}
    {"event": "link", "tier": "inter_node", "pairs": 4, "bytes": 1048576, "seconds": [...]}
    {"event": "add", "bytes": 1048576, "seconds": [...]}
    {"event": "all_reduce", "algorithm": "ring", "bytes": 8388608, "seconds": [...]}
    {"event": "cards", "algorithm": "ring", "bytes": 8388608, "sent": [...], "received": [...]}

seconds: of one call, by block, on the slowest rank. A link line is one message, timed as a step of
a ring. With 1 pair nothing else moves on an instance; with more, so many of its ranks send at the
same time. An add line: every rank adds so many bytes of float32, all at the same time. Cards lines
(--card-bytes) are what the instances' network cards counted in one call, by rank, with all headers.
Two of a name, "ring,ring again", measure it twice in each round, to see the noise.
An algorithm that does not give what torch's all-reduce gives is not measured: the script fails.
"""

import argparse
from functools import partial

import torch
import torch.distributed as dist

from collectives import placement, tiers, timing
from collectives.timing import say
from common.arguments import add_flag, list_of, number, one_of, plain_parser, threads_per_rank
from common.errors import ScriptError, run_main
from common.ranks_torch import cleanup, init_distributed

ODD_LENGTH = 1001  # elements, in the comparison with torch's own
ADDED = 2**20  # bytes
ADDITIONS = 20  # in a row: the ranks do not begin to the microsecond


def arguments() -> argparse.Namespace:
    """Read the flags; lists are written with commas."""
    parser = plain_parser(__doc__)
    every = "gloo,ring,interleaved_ring,hierarchical"
    names = list_of(one_of(timing.ALGORITHMS, timing.AGAIN), "names")
    add_flag(parser, "--algorithms", type=names, default=every)
    sizes, count = list_of(_size, "sizes"), number(int, 1)
    add_flag(parser, "--bytes", type=sizes, default="8388608,1048576", help="of float32 tensors")
    chunks = "196608,393216,786432"
    add_flag(parser, "--link-bytes", type=sizes, default=chunks, help="of a ring's messages")
    add_flag(parser, "--card-bytes", type=sizes, default=[], help="of tensors, for network cards")
    add_flag(parser, "--smallest-only", type=names, default=[], help="not with the larger --bytes")
    add_flag(parser, "--blocks", type=count, default=5, help="measurements of each")
    add_flag(parser, "--calls", type=count, default=1, help="calls in a row in each of them")
    return parser.parse_args()


def main() -> None:
    """Join the ranks, check the algorithms, measure links and all-reduces."""
    args = arguments()
    _, ranks_here = init_distributed("gloo")
    torch.set_num_threads(threads_per_rank(0, ranks_here))
    try:
        instances = placement.equal_instances()
    except ValueError as error:
        raise ScriptError(str(error)) from error
    say(event="placement", instances=len(instances), ranks_per_instance=len(instances[0]))
    for algorithm in args.algorithms:
        check(algorithm)  # which opens its connections, too
    measure_links(args)
    measure_adding(args)
    measure_all_reduces(args)
    count_on_cards(args)
    cleanup()


def measure_links(args: argparse.Namespace) -> None:
    """Print a line for each tier, number of pairs and size of a message."""
    measured = tiers.message_seconds(args.link_bytes, args.calls, args.blocks)
    for (tier, pairs, n_bytes), seconds in measured.items():
        say(event="link", tier=tier, pairs=pairs, bytes=n_bytes, seconds=seconds)


def measure_adding(args: argparse.Namespace) -> None:
    """Print a line: how long adding takes while all ranks add."""
    sums, arrived = torch.zeros(2, ADDED // 4)
    measured = timing.in_turns({"add": lambda: sums.add_(arrived)}, ADDITIONS, args.blocks)
    say(event="add", bytes=ADDED, seconds=measured["add"])


def measure_all_reduces(args: argparse.Namespace) -> None:
    """Print a line for each size and algorithm; algorithms alternate, block by block."""
    for n_bytes in args.bytes:
        left_out = args.smallest_only if n_bytes > min(args.bytes) else []
        algorithms = [name for name in args.algorithms if name not in left_out]
        tensor = torch.zeros(n_bytes // 4)
        functions = {name: partial(timing.algorithm_of(name), tensor) for name in algorithms}
        functions[algorithms[-1]]()  # a limited link has saved up for a burst while it was idle
        calls = tiers.calls_for(n_bytes, args.calls)
        measured = timing.in_turns(functions, calls, args.blocks, warm_up=0)
        for algorithm, seconds in measured.items():
            say(event="all_reduce", algorithm=algorithm, bytes=n_bytes, seconds=seconds)


def count_on_cards(args: argparse.Namespace) -> None:
    """Print a line for each size and algorithm: the bytes of one call, on each rank's card."""
    for n_bytes in args.card_bytes:
        for algorithm in args.algorithms:
            tensor, all_reduce = torch.zeros(n_bytes // 4), timing.algorithm_of(algorithm)
            if counted := tiers.card_bytes(partial(all_reduce, tensor)):
                sent, received = (list(column) for column in zip(*counted, strict=True))
                say(event="cards", algorithm=algorithm, bytes=n_bytes, sent=sent, received=received)


def check(algorithm: str) -> None:
    """Raise ScriptError, on all ranks, if any rank's result is not torch's."""
    different = torch.tensor(timing.different_elements(algorithm, ODD_LENGTH))
    dist.all_reduce(different)
    if different:
        raise ScriptError(
            f"{algorithm} is wrong in {different.item()} of {ODD_LENGTH} x {dist.get_world_size()}"
            " elements: nothing was measured. Compare it with dist.all_reduce on a few numbers"
        )


def _size(text: str) -> int:
    n_bytes = number(int, 4)(text)
    if n_bytes % 4:
        raise argparse.ArgumentTypeError(f"{text} given; a float32 has 4 bytes: give a multiple")
    return n_bytes


if __name__ == "__main__":
    run_main(main)
