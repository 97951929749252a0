"""The emulator: started when it is needed, and this process pointed at it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping

import psutil

import local_sagemaker
from workshop.launch.processes import is_free

END_SECONDS = 10
_pointed = contextlib.ExitStack()


def ensure_up(report: Callable[[str], object] = print) -> tuple[local_sagemaker.Running, bool]:
    """Start the emulator if it is down.

    Takes a free port if the usual one is in use. Returns the emulator, and whether this call
    started it. Raises local_sagemaker.EmulatorError if it cannot be started.
    """
    state, port = local_sagemaker.state_directory(), local_sagemaker.DEFAULT_PORT
    if running := local_sagemaker.running(state):
        return running, False
    try:
        running = local_sagemaker.start(state, port if is_free(port) else 0)
    except local_sagemaker.EmulatorError:
        if is_free(port):
            raise
        running = local_sagemaker.start(state, 0)  # somebody else took it in the meantime
    report(f"The emulator was down; started it on {running.url}.")
    return running, True


@contextlib.contextmanager
def up_for_now(report: Callable[[str], object] = print) -> Iterator[local_sagemaker.Running]:
    """The emulator, for the length of a `with`; one that this started is ended again."""
    running, started = ensure_up(report)
    try:
        yield running
    finally:
        if started:
            local_sagemaker.stop(local_sagemaker.state_directory())
            with contextlib.suppress(psutil.Error):  # it releases port and lock a moment earlier
                psutil.Process(running.pid).wait(END_SECONDS)
            report("Stopped the emulator.")


@contextlib.contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set environment variables, or remove those that are None, for the length of a `with`."""
    before = {name: os.environ.get(name) for name in values}
    _set(values)
    try:
        yield
    finally:
        _set(before)


def _set(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def pointed_at(running: local_sagemaker.Running) -> contextlib.AbstractContextManager:
    """This process's AWS variables set for the emulator, for the length of a `with`."""
    values = dict.fromkeys(local_sagemaker.conflicting_variables(os.environ))
    state = local_sagemaker.state_directory()
    return variables({**values, **local_sagemaker.environment(state, running.port)})


def point_here(running: local_sagemaker.Running) -> None:
    """The same without a `with`; `point_back` undoes it."""
    point_back()
    _pointed.enter_context(pointed_at(running))


def point_back() -> None:
    """Restore the AWS variables as they were before `point_here`."""
    _pointed.close()
