"""Read a channel, and divide training into epochs of whole global batches."""

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.errors import ScriptError

CLASSES = 10
SMALLEST = 4  # pixels of an image's side
# What numpy raises for a file that is cut off, empty, of another form, or whose header asks for
# more memory than there is.
DAMAGED = (KeyError, ValueError, OSError, EOFError, TypeError, AttributeError, MemoryError)
DAMAGED += (zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError)


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
    parts = sorted(Path(folder).glob("part-*.npz"))
    if not parts:
        raise ScriptError(
            f"no part-*.npz in {folder}. Make the default data with `python -m data_prep digits` "
            "(run it beside the scripts folder), or point --training and --test (on SageMaker: "
            "the channels 'training' and 'test') at data in that form"
        )
    loaded = [_load_part(path) for path in parts]
    if len({images.shape[1:] for images, _ in loaded}) > 1:
        raise ScriptError(f"the parts in {folder} hold images of different sizes")
    images, labels = (np.concatenate(arrays) for arrays in zip(*loaded, strict=True))
    _check(folder, images, like)
    return images, labels


def _check(folder: Path, images: np.ndarray, like: np.ndarray | None) -> None:
    if not len(images):
        raise ScriptError(
            f"{folder} has no examples; prepare the data again, or point --training "
            "and --test at other data"
        )
    if min(images.shape[1:3]) < SMALLEST:
        raise ScriptError(
            f"{folder} holds images of {images.shape[1:]}; expected at least "
            f"{SMALLEST} x {SMALLEST} pixels, since the model halves them twice"
        )
    if like is not None and images.shape[1:] != like.shape[1:]:
        raise ScriptError(
            f"{folder} holds images of {images.shape[1:]}, and those to train on are "
            f"{like.shape[1:]}; point --training and --test at channels of one data set"
        )


def _load_part(path: Path) -> tuple[np.ndarray, np.ndarray]:
    try:
        with np.load(path) as part:
            images, labels = part["images"], part["labels"]
    except DAMAGED as error:
        raise ScriptError(
            f"{path} can't be read: {error}. Expected an .npz file with the arrays 'images' and "
            "'labels'; prepare the data again"
        ) from error
    right = images.ndim == 4 and images.dtype == np.uint8 and labels.shape == images.shape[:1]
    if not right or not np.issubdtype(labels.dtype, np.integer):
        raise ScriptError(
            f"{path} holds images {images.dtype}{images.shape} and labels {labels.dtype}"
            f"{labels.shape}; expected uint8 (n, height, width, channels) and int64 (n,)"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < CLASSES:
        raise ScriptError(f"{path} has labels outside 0 to {CLASSES - 1}")
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
