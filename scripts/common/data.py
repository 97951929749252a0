"""Read a channel, and divide training into epochs of whole global batches."""

import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from common.errors import ScriptError

CLASSES = 10
# What numpy raises for a file that is cut off, empty, of another form, or whose header asks for
# more memory than there is.
DAMAGED = (KeyError, ValueError, OSError, EOFError, TypeError, AttributeError, MemoryError)
DAMAGED += (zipfile.BadZipFile, zlib.error, tokenize.TokenError, SyntaxError)


def load_channel(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read every part-*.npz of a channel, in the order of their names.

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
    return np.concatenate([i for i, _ in loaded]), np.concatenate([la for _, la in loaded])


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
