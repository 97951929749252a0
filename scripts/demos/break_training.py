"""Break distributed training, each way by one mistake; or train with the mistake fixed.

    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs
    mpirun -np 2 python scripts/demos/break_training.py rank_dies
    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs --fixed

(mpirun wants --allow-run-as-root when you are root, and --oversubscribe for more ranks than
cores.) Each way has one mistake: a function of breaking/short.py, or rank_hangs.py there.
What is to be seen, and why: `workshop break`; `workshop why` finds the cause meanwhile or after.
"""

import argparse
import faulthandler
import signal
import sys

from breaking import rank_hangs
from breaking.short import WAYS as SHORT
from common.arguments import add_flag, parser_for
from common.errors import run_main

WAYS = {"rank_hangs": rank_hangs.train, **SHORT}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("way", choices=WAYS, help="the mistake")
    add_flag(parser, "--fixed", action="store_true", help="without the mistake")
    return parser.parse_args()


def main() -> None:
    """Train in the way that was asked for."""
    args = arguments()
    # Whoever sends SIGUSR1 (kill -USR1 PID) sees where this rank is: its stack, on stderr.
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    WAYS[args.way](args)


if __name__ == "__main__":
    run_main(main)
