"""Checkpoints: files from which a run that was cut off goes on. No framework is imported here.

A checkpoint step-000120.ckpt is one line of JSON, its head, and then the state, bytes that the
framework's own module (checkpoint_torch.py) makes and reads. The head has the state's SHA-256, so
a file that is cut off or changed is never half-read, and the settings that made the state.
"""

import contextlib
import hashlib
import json
import os
import re
from pathlib import Path

from common.errors import ScriptError
from common.report import emit

KEEP = 2  # the newest, and the one before in case the newest can't be read
_FORM = "workshop checkpoint 1"
_NAME = re.compile(r"step-(\d{6,})\.ckpt")
_SETTINGS = ("global_batch_size", "learning_rate", "seed", "hidden_units")


class CheckpointFiles:
    """The checkpoints of one run, in args.checkpoint_dir; without one it keeps and finds nothing.

    Args:
        args: the script's arguments.
        made_by: what can read the state, such as "torch".
        rank: of this process; rank 0 alone writes.
        settings: more of what must be the same again for a run to go on, JSON values.

    Attributes: writes, whether this rank does.
    """

    def __init__(self, args, made_by: str, rank: int = 0, **settings):
        self._folder, self._every = args.checkpoint_dir, args.checkpoint_every
        self.writes = rank == 0
        self._settings = {"made_by": made_by} | {name: getattr(args, name) for name in _SETTINGS}
        self._settings |= settings

    def due(self, step: int, ends_epoch: bool) -> bool:
        """Whether a checkpoint is wanted after this step; the same on every rank."""
        if self._folder is None:
            return False
        return step % self._every == 0 if self._every else ends_epoch

    def save(self, step: int, state: bytes) -> None:
        """Write a checkpoint, whole or not at all, and remove all but the newest KEEP.

        Does nothing on other ranks than 0. Raises ScriptError if the disk doesn't take it.
        """
        if not self.writes or self._folder is None:
            return
        head = {"form": _FORM, "step": step, "bytes": len(state), "sha256": _digest(state)}
        head |= {"settings": self._settings}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path_of(self._folder, step), json.dumps(head).encode() + b"\n" + state)
            left_by_a_killed_run = self._folder.glob(".step-*.ckpt.partial")
            for path in [*newest_first(self._folder)[KEEP:], *left_by_a_killed_run]:
                path.unlink(missing_ok=True)
        except OSError as error:
            raise ScriptError(
                f"the checkpoint of step {step} can't be written to {self._folder}: "
                f"{error.strerror}. Make room there, or choose another --checkpoint-dir"
            ) from error
        emit(event="checkpoint", step=step, bytes=len(state))

    def latest(self) -> bytes | None:
        """Return the state of the newest checkpoint that can be read; None if there is no file.

        A damaged file is said and passed over for the one before. Raises ScriptError if all are
        damaged, or if the checkpoint is another run's: of other settings, another framework.
        """
        paths = [] if self._folder is None else newest_first(self._folder)
        for path in paths:
            try:
                head, state = read(path)
            except (OSError, ValueError) as error:
                emit(event="checkpoint_skipped", file=str(path), reason=str(error))
                continue
            self._check(path, head["settings"])
            emit(event="resumed", step=head["step"], file=str(path))
            return state
        if paths:
            raise ScriptError(
                f"none of the {len(paths)} checkpoints in {self._folder} can be read (see above). "
                "Remove them to begin at step 0, or choose another --checkpoint-dir"
            )
        return None

    def _check(self, path: Path, found: dict) -> None:
        wrong = [
            f"{name.replace('_', '-')} {found.get(name)!r} there, {self._settings.get(name)!r} here"
            for name in sorted(set(found) | set(self._settings))
            if found.get(name) != self._settings.get(name)
        ]
        if wrong:
            raise ScriptError(
                f"{path} is a checkpoint of another run: {'; '.join(wrong)}. Give the same "
                "settings to go on, or another --checkpoint-dir to begin at step 0"
            )


def path_of(folder: Path, step: int) -> Path:
    """Return the path of a step's checkpoint."""
    return folder / f"step-{step:06d}.ckpt"


def newest_first(folder: Path) -> list[Path]:
    """Return the paths of all checkpoints in a folder; files of other names are not looked at."""
    found = [(int(name[1]), path) for path, name in _named(folder) if path.is_file()]
    return [path for _, path in sorted(found, reverse=True)]


def _named(folder: Path) -> list[tuple[Path, re.Match]]:
    try:
        paths = list(folder.iterdir())
    except FileNotFoundError:  # nothing was written yet
        return []
    except OSError as error:
        raise ScriptError(
            f"{folder} can't be read: {error.strerror}. Choose another --checkpoint-dir"
        ) from error
    return [(path, name) for path in paths if (name := _NAME.fullmatch(path.name))]


def read(path: Path) -> tuple[dict, bytes]:
    """Return a checkpoint's head and its state.

    Raises ValueError for a file that is no whole checkpoint, OSError.
    """
    line, newline, state = path.read_bytes().partition(b"\n")
    try:
        head = json.loads(line)
        right = head["form"] == _FORM and isinstance(head["settings"], dict)
        claimed = (int(head["step"]), int(head["bytes"]), head["sha256"])
    except (ValueError, TypeError, KeyError):
        right = False
    if not right or not newline:
        raise ValueError("it is no checkpoint of these scripts")
    if claimed[1:] != (len(state), _digest(state)):
        raise ValueError("it is damaged: its content is not what was written")
    if path_of(path.parent, claimed[0]) != path:
        raise ValueError(f"it was renamed: it holds step {claimed[0]}")
    return head, state


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all, also after a crash of the machine."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # before the rename: else the name could come first
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the new name itself
    finally:
        os.close(folder)


def _digest(state: bytes) -> str:
    return hashlib.sha256(state).hexdigest()
