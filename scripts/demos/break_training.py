"""Break distributed training, each way by one mistake; or train with the mistake fixed.

    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs
    mpirun -np 2 python scripts/demos/break_training.py rank_dies
    torchrun --standalone --nproc_per_node 2 scripts/demos/break_training.py rank_hangs --fixed

(mpirun wants --allow-run-as-root when you are root, and --oversubscribe for more ranks than
cores.) Each way is a file in scripts/demos/breaking/: a short script with one mistake. What is to
be seen, and why: `workshop break`.
"""

import argparse
import faulthandler
import importlib
import signal
import sys
from pathlib import Path

from common.arguments import add_flag, parser_for
from common.errors import run_main

WAYS = sorted(
    path.stem
    for path in (Path(__file__).parent / "breaking").glob("*.py")
    if path.stem not in ("__init__", "parts")
)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = parser_for(__file__, __doc__)
    parser.add_argument("way", choices=WAYS, help="the mistake: a file in scripts/demos/breaking/")
    add_flag(parser, "--fixed", action="store_true", help="without the mistake")
    return parser.parse_args()


def main() -> None:
    """Train in the way that was asked for."""
    args = arguments()
    # Whoever sends SIGUSR1 (kill -USR1 PID) sees where this rank is: its stack, on stderr.
    faulthandler.register(signal.SIGUSR1, file=sys.stderr, all_threads=False)
    importlib.import_module(f"breaking.{args.way}").train(args)


if __name__ == "__main__":
    run_main(main)
