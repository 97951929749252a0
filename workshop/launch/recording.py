"""A record of ranks: a folder in which each rank notes where it is, for `workshop why`.

recorder/ runs in the ranks' own processes, found through PYTHONPATH. The folders are in
build/records, those of the emulator's jobs in build/job-records; the newest are left.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from workshop.paths import BUILD

RECORDS = BUILD / "records"
RECORDER = Path(__file__).with_name("recorder")
MAX_RECORDS = 40
# So many collectives of a rank are remembered: some hundreds of steps.
ENTRIES = 2000
ADDED_TO = ("PYTHONPATH", "TORCH_FR_BUFFER_SIZE")
SHARED = "LOCAL_SAGEMAKER_FOLDER"  # by it the emulator's jobs may write into a folder


class Record:
    """A new folder for the ranks of one start. Attributes: folder."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        name = time.strftime("%Y%m%d-%H%M%S")
        self.folder = RECORDS / f"{name}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}"
        self._began = time.monotonic()
        try:
            self.folder.mkdir(parents=True)
        except OSError:  # a checkout that may only be read must not keep ranks from starting
            self.folder = Path(tempfile.mkdtemp(prefix="workshop-record-"))
        self._write(
            "start.json",
            {"commands": commands, "folder": os.getcwd(), "pid": os.getpid(), "time": time.time()},
        )
        self._log = (self.folder / "log").open("w")
        if self.folder.parent == RECORDS:
            _remove_old(RECORDS)

    def environment(self, variables: Mapping[str, object]) -> dict[str, str]:
        """The variables of a rank, with those by which it is recorded."""
        inherited = {name: os.environ[name] for name in ADDED_TO if name in os.environ}
        return _recorded({**inherited, **variables}, self.folder)

    def line(self, rank: int | None, text: str) -> None:
        """Note a line of output."""
        with contextlib.suppress(OSError, ValueError):  # deleted, or over
            self._log.write(f"{'' if rank is None else rank}\t{text}\n")
            self._log.flush()

    def close(self, statuses: Sequence[int | None]) -> None:
        """Note how the commands ended."""
        self._write(
            "end.json",
            {"statuses": list(statuses), "seconds": time.monotonic() - self._began},
        )
        self._log.close()

    def _write(self, name: str, content: dict) -> None:
        with contextlib.suppress(OSError):
            (self.folder / name).write_text(json.dumps(content))


def job_environment(job: str, requested: Mapping[str, str]) -> dict[str, str]:
    """The Environment of a job of the emulator, with the variables by which its ranks are recorded.

    Just what was requested, if the job shares another folder or none can be made. AWS's jobs could
    not write here.
    """
    folder = RECORDS.with_name("job-records") / job
    try:
        if SHARED in requested:
            return dict(requested)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return dict(requested)
    _remove_old(folder.parent)
    return _recorded({**requested, SHARED: folder}, folder)


def _recorded(variables: Mapping[str, object], folder: Path) -> dict[str, str]:
    paths = filter(None, [str(RECORDER), str(variables.get("PYTHONPATH", ""))])
    recorded = {
        **variables,
        "PYTHONPATH": os.pathsep.join(paths),
        "WORKSHOP_RECORD": folder,
        "TORCH_FR_BUFFER_SIZE": variables.get("TORCH_FR_BUFFER_SIZE") or ENTRIES,
    }
    return {name: str(value) for name, value in recorded.items()}


def _remove_old(folder: Path) -> None:
    """Leave the newest records."""
    with contextlib.suppress(OSError):  # somebody else's, or removed meanwhile
        records = sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for old in records[:-MAX_RECORDS]:
            shutil.rmtree(old, ignore_errors=True)
