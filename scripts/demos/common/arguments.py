"""Command-line arguments of the demonstrations that train, with SageMaker's variables as defaults.

On an instance SageMaker sets them; elsewhere the defaults point at the data and build folders
beside `scripts/`.
"""

import argparse
import math
import os
from pathlib import Path

from common.errors import ScriptError

_BESIDE_SCRIPTS = Path(__file__).resolve().parents[3]
_DIGITS = _BESIDE_SCRIPTS / "data" / "digits"


def number(kind, minimum, exclusive=False):
    """Return an argparse type: a `kind` not below (or, exclusive, above) `minimum`."""

    def parse(text: str):
        value = kind(text)
        if isinstance(value, float) and not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"{text} given, a finite number expected")
        if value < minimum or (exclusive and value == minimum):
            relation = "more than" if exclusive else "at least"
            raise argparse.ArgumentTypeError(f"{text} given, {relation} {minimum} expected")
        return value

    parse.__name__ = kind.__name__  # argparse names it in "invalid int value"
    return parse


def list_of(kind, name: str):
    """Return an argparse type: values of `kind` with commas between, each once, as a list."""

    def parse(text: str) -> list:
        return list(dict.fromkeys(kind(word.strip()) for word in text.split(",")))

    parse.__name__ = name  # argparse says "invalid sizes value"
    return parse


def one_of(names, suffix: str = ""):
    """Return an argparse type: one of these names, which may have the suffix behind it."""

    def parse(text: str) -> str:
        if text.removesuffix(suffix) not in names:
            raise argparse.ArgumentTypeError(f"no {text}; there are {', '.join(names)}")
        return text

    return parse


def folder(text: str) -> Path:
    """An argparse type: a folder to write into, which need not be there yet."""
    path = Path(text)
    there = next((p for p in (path, *path.parents) if p.exists()), path)
    if there.exists() and not there.is_dir():
        raise argparse.ArgumentTypeError(f"{there} is a file, a folder expected")
    return path


def add_flag(parser: argparse.ArgumentParser, flag: str, **options) -> None:
    """Add a flag such as "--max-steps", which may be spelled with underscores too."""
    parser.add_argument(*dict.fromkeys([flag, "--" + flag[2:].replace("-", "_")]), **options)


def plain_parser(description: str) -> argparse.ArgumentParser:
    """Build a parser with the first line of a script's docstring, and no flags of its own yet."""
    first_line = description.strip().splitlines()[0]
    parser = argparse.ArgumentParser(description=first_line, allow_abbrev=False)
    parser.add_argument(
        "--model_dir",
        help="not used; SageMaker's TensorFlow estimator sends it",
    )
    return parser


def parser_for(script: str, description: str) -> argparse.ArgumentParser:
    """Build the parser that scripts that train share.

    Args:
        script: path of the script, `__file__`; its stem names the local output folder.
        description: the script's docstring; its first line is shown by --help.

    A hyperparameter may be spelled with hyphens or underscores. Unknown flags are errors.
    """
    env = os.environ.get
    parser = plain_parser(description)

    def add(flag, **options):
        add_flag(parser, flag, **options)

    positive = number(int, 1)
    add("--epochs", type=positive, default=20, help="passes over the training channel")
    add(
        "--global-batch-size",
        type=positive,
        default=64,
        help="examples per step, summed over all ranks",
    )
    add(
        "--learning-rate",
        type=number(float, 0, exclusive=True),
        default=0.05,
        help="for the whole global batch: scale it yourself when you change --global-batch-size",
    )
    add("--seed", type=number(int, 0), default=0, help="of the weights and of the shuffling")
    add("--max-steps", type=number(int, 0), default=0, help="stop after so many; 0: no limit")
    add("--hidden-units", type=positive, default=64, help="width of the dense layer")
    add(
        "--threads-per-rank",
        type=number(int, 0),
        default=0,
        help="CPU threads of one rank; 0: this machine's cores divided among its ranks",
    )
    add("--log-every", type=number(int, 0), default=10, help="steps; 0: only at epoch ends")
    add("--training", type=Path, default=Path(env("SM_CHANNEL_TRAINING", _DIGITS / "training")))
    add("--test", type=Path, default=Path(env("SM_CHANNEL_TEST", _DIGITS / "test")))
    local_model = _BESIDE_SCRIPTS / "build" / "model" / Path(script).stem
    add("--save-to", type=folder, default=Path(env("SM_MODEL_DIR", local_model)))
    return parser


def local_batch_size(global_batch_size: int, world_size: int) -> int:
    """Return how many examples of each global batch one rank takes.

    Raises:
        ScriptError: the ranks can't take equal parts. Unequal parts would give some examples
            more weight than others when the ranks' mean gradients are averaged.
    """
    if global_batch_size % world_size:
        below = global_batch_size // world_size * world_size
        choices = " or ".join(str(size) for size in (below, below + world_size) if size)
        raise ScriptError(
            f"--global-batch-size {global_batch_size} can't be split evenly among "
            f"{world_size} ranks; choose {choices}"
        )
    return global_batch_size // world_size


def threads_per_rank(requested: int, ranks_here: int) -> int:
    """Return the CPU threads one rank should use: `requested`, or a fair part of the machine if 0.

    Ranks that each start a thread per core fight for the cores, which costs more than it gains.
    """
    if requested:
        return requested
    cores = os.cpu_count() or 1
    # mpirun may have bound this process to fewer cores than the machine has.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    return max(1, min(allowed, cores // ranks_here))
