"""Read a channel, and divide training into epochs of whole global batches."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.errors import ScriptError

CLASSES = 10


def load_channel(folder: Path, like: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read every part-*.npz of a channel, in the order of their names.

    Args:
        like: images that the channel's have to be as large as; None for any.

    Returns:
        images: uint8, (examples, height, width, channels), pixels 0 to 255.
        labels: int64, (examples,), 0 to 9.

    Raises:
        ScriptError: no part is there, or its images are of another size.
    """
    parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
    if not parts:
        raise ScriptError(
            f"no part-*.npz in {folder}: `python -m data_prep digits` writes them; --training and "
            "--test (on SageMaker: the channels of these names) say where they are"
        )
    images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
    if like is not None and images.shape[1:] != like.shape[1:]:
        raise ScriptError(
            f"{folder} holds images of {images.shape[1:]}, and those to train on are "
            f"{like.shape[1:]}; point --training and --test at channels of one data set"
        )
    return images, labels


def epochs_and_steps(args, examples: int) -> Iterator[tuple[int, int]]:
    """Yield (epoch, steps in it), epochs counted from 1, until --epochs or --max-steps is reached.

    Only whole global batches count. The ragged rest of an epoch (fewer than a global batch) is
    left out, so that every step averages over equally many examples on every rank; the next
    epoch's shuffle leaves out others.
    """
    per_epoch = examples // args.global_batch_size
    if per_epoch == 0:
        raise ScriptError(
            f"the training channel has {examples} examples, fewer than one global batch of "
            f"{args.global_batch_size}; lower --global-batch-size"
        )
    left = args.max_steps or args.epochs * per_epoch
    for epoch in range(1, args.epochs + 1):
        steps = min(per_epoch, left)
        if steps == 0:
            return
        left -= steps
        yield epoch, steps
