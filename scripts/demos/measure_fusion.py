"""Measure an all-reduce of many tensors, which Horovod fuses into few messages, or does not.

    mpirun -np 2 python scripts/demos/measure_fusion.py --tensors 84 --bytes 423464
    HOROVOD_FUSION_THRESHOLD=0 mpirun -np 2 python scripts/demos/measure_fusion.py

Horovod takes the threshold when it starts, so each setting needs a run of its own. Rank 0 prints a
JSON line for each round, in seconds for all tensors together, on the slowest rank:

    {"event": "fusion", "tensors": 84, "seconds": 0.02}
"""

import time

from common.keras2 import tf  # before Horovod

# isort: split
import horovod.tensorflow as hvd

from common.arguments import add_flag, number, plain_parser
from common.errors import run_main
from common.report import emit

FLOAT_BYTES = 4


def main() -> None:
    """Measure in rounds; the first, which warms up, is not counted."""
    parser = plain_parser(__doc__)
    positive = number(int, 1)
    add_flag(parser, "--tensors", type=positive, default=84, help="how many are all-reduced")
    add_flag(parser, "--bytes", type=positive, default=423_464, help="of all of them together")
    add_flag(parser, "--calls", type=positive, default=5, help="in one measurement")
    add_flag(parser, "--rounds", type=positive, default=7, help="measurements")
    args = parser.parse_args()
    hvd.init()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tensors = [tf.ones(max(1, args.bytes // FLOAT_BYTES // args.tensors))] * args.tensors

    @tf.function(autograph=False)
    def reduce_all(tensors):  # as an argument: constants would be all-reduced only once
        return [hvd.allreduce(tensor, name=f"tensor_{at}") for at, tensor in enumerate(tensors)]

    for round_number in range(args.rounds + 1):
        hvd.allgather_object(None)  # all begin together
        began = time.perf_counter()
        for _ in range(args.calls):
            for tensor in reduce_all(tensors):
                tensor.numpy()  # wait until it has arrived
        seconds = (time.perf_counter() - began) / args.calls
        slowest = max(hvd.allgather_object(seconds))
        if round_number and hvd.rank() == 0:
            emit(event="fusion", tensors=args.tensors, seconds=round(slowest, 6))
    hvd.shutdown()


if __name__ == "__main__":
    run_main(main)
