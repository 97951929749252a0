"""Break distributed training, each way by one mistake; or train with the mistake fixed.

    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs
    mpirun -np 2 python scripts/demos/break_training.py rank_dies
    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs --fixed

(mpirun wants --allow-run-as-root when you are root, and --oversubscribe for more ranks than
cores.) Each way is a file in scripts/demos/breaking/, or a function of short.py there: one mistake.
What is to be seen, and why: `workshop break`; `workshop why` finds the cause meanwhile or after.
"""

import argparse
import faulthandler
import importlib
import signal
import sys
from pathlib import Path

from breaking.short import WAYS as SHORT
from common.arguments import add_flag, parser_for
from common.errors import run_main

WAYS = sorted(
    path.stem
    for path in (Path(__file__).parent / "breaking").glob("*.py")
    if path.stem not in ("__init__", "parts", "short")
)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("way", choices=[*WAYS, *SHORT], help="the mistake")
    add_flag(parser, "--fixed", action="store_true", help="without the mistake")
    return parser.parse_args()


def main() -> None:
    """Train in the way that was asked for."""
    args = arguments()
    # Whoever sends SIGUSR1 (kill -USR1 PID) sees where this rank is: its stack, on stderr.
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    if args.way in SHORT:
        SHORT[args.way](args)
    else:
        importlib.import_module(f"breaking.{args.way}").train(args)


if __name__ == "__main__":
    run_main(main)
