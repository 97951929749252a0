"""The emulator: started when it is needed, and this process pointed at it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import local_sagemaker

END_SECONDS = 10
_saved: dict[str, str | None] = {}


def ensure_up(say=print) -> tuple[local_sagemaker.Running, bool]:
    """Start the emulator if it is down.

    Takes a free port if the usual one is in use. Returns the emulator, and whether this call
    started it. Raises local_sagemaker.EmulatorError if it cannot be started.
    """
    state = local_sagemaker.state_directory()
    if found := local_sagemaker.running(state):
        return found, False
    port = (
        local_sagemaker.DEFAULT_PORT if local_sagemaker.is_free(local_sagemaker.DEFAULT_PORT) else 0
    )
    found = local_sagemaker.start(state, port)
    say(f"The emulator was down; started it on {found.url}.")
    return found, True


@contextlib.contextmanager
def up_for_now(say=print) -> Iterator[local_sagemaker.Running]:
    """The emulator, for the length of a `with`; one that this started is ended again."""
    found, started = ensure_up(say)
    try:
        yield found
    finally:
        if started:
            local_sagemaker.stop(local_sagemaker.state_directory())
            _wait_for(found.pid)
            say("Stopped the emulator.")


def _wait_for(pid: int) -> None:
    """Wait until a child has ended: it lets go of its port and its lock a moment before."""
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ChildProcessError):  # not our child, or waited for already
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.05)


def point_here(found: local_sagemaker.Running) -> None:
    """Set this process's AWS variables for the emulator; `point_back` undoes it."""
    wanted = local_sagemaker.environment(local_sagemaker.state_directory(), found.port)
    for name in [*wanted, *local_sagemaker.conflicting_variables(os.environ)]:
        _saved.setdefault(name, os.environ.get(name))
        os.environ.pop(name, None)
    os.environ |= wanted


def point_back() -> None:
    """Restore the AWS variables as they were before `point_here`."""
    for name, value in _saved.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value
    _saved.clear()
