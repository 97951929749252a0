"""What checkpoints of both frameworks have in common: when one is due, and whose they are."""

import json
import os
from collections.abc import Callable
from pathlib import Path

from common.errors import ScriptError
from common.report import emit

KEEP = 2  # the newest, and the one before in case the newest can't be read
_SETTINGS = ("global_batch_size", "learning_rate", "seed", "hidden_units")


class CheckpointFolder:
    """The folder args.checkpoint_dir. Without one no checkpoint is due or found.

    settings.json in it says which run the checkpoints are of.

    Args:
        args: the script's arguments.
        framework: what wrote the checkpoints and can read them.
        shapes: of the model's weights.
    """

    def __init__(self, args, framework: str, shapes: list) -> None:
        self.path, self._every = args.checkpoint_dir, args.checkpoint_every
        self._settings = {name: getattr(args, name) for name in _SETTINGS}
        self._settings |= {"framework": framework, "shapes": [list(shape) for shape in shapes]}

    def due(self, step: int, ends_epoch: bool) -> bool:
        """Whether a checkpoint is wanted after this step; the same on every rank."""
        if self.path is None:
            return False
        return step % self._every == 0 if self._every else ends_epoch

    def save(self, step: int, write: Callable[[], object]) -> None:
        """Call `write`, which writes the checkpoint. Rank 0 alone calls this.

        Raises ScriptError if the disk doesn't take it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if self._found_settings() != self._settings:
                partial = self.path / "settings.partial"
                partial.write_text(json.dumps(self._settings))
                os.replace(partial, self.path / "settings.json")  # whole or not at all
            write()
        except Exception as error:  # TensorFlow and PyTorch have errors of their own
            raise ScriptError(
                f"the checkpoint of step {step} can't be written to {self.path}: {error}. Make "
                "room there, or choose another --checkpoint-dir"
            ) from error
        emit(event="checkpoint", step=step)

    def load(self, paths: list, read: Callable):
        """Return read(path) of the first of `paths`, newest first, that can be read; None of [].

        Raises ScriptError if none can be read, or if they are another run's.
        """
        if not paths:
            return None
        self._check_settings()
        for path in paths:
            try:
                state = read(path)
            except Exception as error:  # whatever is wrong with the file: try the one before
                emit(event="checkpoint_skipped", file=str(path), reason=str(error))
                continue
            step = int(Path(path).stem.removeprefix("step-"))
            emit(event="resumed", step=step, file=str(path))
            return state
        raise ScriptError(
            f"none of the {len(paths)} checkpoints in {self.path} can be read (see above). "
            "Remove them to begin at step 0, or choose another --checkpoint-dir"
        )

    def _found_settings(self) -> dict:
        try:
            return json.loads((self.path / "settings.json").read_text())
        except (OSError, ValueError):
            return {}

    def _check_settings(self) -> None:
        found = self._found_settings()
        wrong = [
            f"{name.replace('_', '-')} {found.get(name)!r} there, {here!r} here"
            for name, here in self._settings.items()
            if found.get(name) != here
        ]
        if wrong:
            raise ScriptError(
                f"the checkpoints in {self.path} are of another run: {'; '.join(wrong)}. Give "
                "the same settings to resume it, or another --checkpoint-dir to begin at step 0"
            )
