"""Read a channel, and divide training into epochs of whole global batches."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.errors import ScriptError

CLASSES = 10
MIN_SIDE = 4  # pixels of an image's side: the model halves them twice


def load_channel(folder: Path, like: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read every part-*.npz of a channel, in the order of their names.

    Args:
        like: images that the channel's have to be as large as; None for any.

    Returns:
        images: uint8, (examples, height, width, channels), pixels 0 to 255.
        labels: int64, (examples,), 0 to 9.

    Raises:
        ScriptError: no part is there, or a part is not what a channel holds.
    """
    try:
        parts = [np.load(path) for path in sorted(Path(folder).glob("part-*.npz"))]
        images, labels = (np.concatenate([p[key] for p in parts]) for key in ("images", "labels"))
        assert images.dtype == np.uint8 and images.ndim == 4, f"{images.dtype}{images.shape}"
        assert min(images.shape[1:3]) >= MIN_SIDE, f"images of {images.shape[1:]}"
        assert labels.shape == images.shape[:1], f"{len(labels)} labels of {len(images)} images"
        assert np.issubdtype(labels.dtype, np.integer), f"labels {labels.dtype}"
        assert 0 <= labels.min() <= labels.max() < CLASSES, f"labels up to {labels.max()}"
    except Exception as error:  # no files, damaged files, or files of something else
        raise ScriptError(
            f"{folder} can't be used ({error!r}). Expected: part-*.npz with images, uint8 "
            f"(n, height, width, channels), {MIN_SIDE} x {MIN_SIDE} pixels or more, and labels "
            "(n,), 0 to 9. Run `python -m data_prep digits` beside the scripts folder, or point "
            "--training and --test (on SageMaker: the channels 'training' and 'test') at such "
            "folders"
        ) from error
    if like is not None and images.shape[1:] != like.shape[1:]:
        raise ScriptError(
            f"{folder} holds images of {images.shape[1:]}, and those to train on are "
            f"{like.shape[1:]}; point --training and --test at channels of one data set"
        )
    return images, labels.astype(np.int64)


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
