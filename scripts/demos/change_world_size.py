"""Train with one number of ranks after the other; each begins where the one before it stopped.

    python scripts/demos/change_world_size.py --ranks 4,3,4 --steps 40

SageMaker: entry_point="change_world_size.py", source_dir="scripts/demos",
dependencies=["scripts/train/train_torch_ddp.py"]. torchrun starts train_torch_ddp.py, whose
checkpoint and global batch are the same for any number of ranks. At last one process trains as many
steps without a stop, and rank 0 prints how far the weights are apart:

    {"event": "compared", "apart": 2.4e-07, "largest": 0.61}

apart: the largest difference of any weight; largest: the largest weight.
"""

import argparse
import os
import tempfile
from pathlib import Path

import torch
from torch.distributed import run as torchrun
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from common.arguments import add_flag, number, plain_parser
from common.errors import ScriptError, run_main
from common.report import emit

DEMOS = Path(__file__).parent


def numbers(text: str) -> list[int]:
    """An argparse type: whole numbers above 0, with commas between."""
    return [number(int, 1)(word) for word in text.split(",")]


def main() -> None:
    """Train in parts, then in one piece; compare."""
    parser = plain_parser(__doc__)
    positive = number(int, 1)
    add_flag(parser, "--ranks", type=numbers, default="4,3,4")
    add_flag(parser, "--steps", type=positive, default=40, help="of each part")
    add_flag(parser, "--global-batch-size", type=positive, default=48, help="the same for all")
    args = parser.parse_args()
    if uneven := [ranks for ranks in args.ranks if args.global_batch_size % ranks]:
        raise ScriptError(f"--global-batch-size: no multiple of {uneven[0]} ranks")
    with tempfile.TemporaryDirectory() as folder:
        parts, whole = Path(folder, "parts"), Path(folder, "whole")
        for number_of_parts, ranks in enumerate(args.ranks, 1):
            train(ranks, number_of_parts * args.steps, args, parts)
        train(1, len(args.ranks) * args.steps, args, whole)
        report_difference(parts, whole)


def training_script() -> Path:
    """Return where train_torch_ddp.py is: in a job beside this file, in the kit in `train`."""
    beside = DEMOS / "train_torch_ddp.py"
    return beside if beside.is_file() else DEMOS.parent / "train" / "train_torch_ddp.py"


def report_difference(parts: Path, whole: Path) -> None:
    """Compare the models that two trainings have saved."""
    ours, alone = (torch.load(end / "model.pt")["state_dict"] for end in (parts, whole))
    apart = max((ours[name] - alone[name]).abs().max().item() for name in alone)
    largest = max(tensor.abs().max().item() for tensor in alone.values())
    emit(event="compared", apart=apart, largest=largest)


def train(
    ranks: int, until: int, args: argparse.Namespace, folder: Path, learning_rate: float = 0.05
) -> None:
    """Train from the checkpoint in the folder, if there is one, to step `until`."""
    flags = {"global-batch-size": args.global_batch_size, "max-steps": until, "log-every": 1}
    flags |= {"epochs": 1000, "checkpoint-dir": folder, "checkpoint-every": args.steps}
    flags |= {"save-to": folder, "learning-rate": learning_rate}
    words = [word for name, value in flags.items() for word in (f"--{name}", str(value))]
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # else torchrun says that it sets it
    try:  # what the command torchrun does, without importing torch once more
        torchrun.main(
            ["--standalone", "--nproc-per-node", str(ranks), str(training_script()), *words]
        )
    except ChildFailedError as error:
        raise ScriptError(f"training with {ranks} ranks failed: {error}") from error


if __name__ == "__main__":
    run_main(main)
