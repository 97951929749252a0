"""The local SageMaker endpoint: started when it is needed, and this process pointed at it."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

from local_sagemaker import daemon

END_SECONDS = 10
_saved: dict[str, str | None] = {}


def ensure_up(say=print) -> tuple[daemon.Running, bool]:
    """Start the local endpoint if it is down.

    Takes a free port if the usual one is in use. Returns the endpoint, and whether this call
    started it. Raises daemon.DaemonError if it cannot be started.
    """
    state = daemon.state_directory()
    if found := daemon.running(state):
        return found, False
    port = daemon.DEFAULT_PORT if daemon.is_free(daemon.DEFAULT_PORT) else 0
    found = daemon.start(state, port)
    say(f"The local SageMaker endpoint was down; started it on {found.url}.")
    return found, True


@contextlib.contextmanager
def up_for_now(say=print) -> Iterator[daemon.Running]:
    """The endpoint, for the length of a `with`; one that this started is ended again."""
    found, started = ensure_up(say)
    try:
        yield found
    finally:
        if started:
            daemon.stop(daemon.state_directory())
            _wait_for(found.pid)
            say("Stopped the local SageMaker endpoint.")


def client(service: str):
    """A boto3 client for the endpoint that is up, whatever the shell's AWS variables say.

    Raises daemon.DaemonError if none is up.
    """
    import boto3  # slow, and `workshop env` need not wait for it
    from botocore.config import Config

    env = environment()
    for name in daemon.in_the_way(os.environ):
        del os.environ[name]
    keys = env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]
    session = boto3.Session(*keys, region_name=env["AWS_DEFAULT_REGION"])
    return session.client(service, endpoint_url=env["AWS_ENDPOINT_URL"], config=Config(proxies={}))


def environment() -> dict[str, str]:
    """The variables by which a shell's programs find the endpoint that is up.

    Raises daemon.DaemonError if none is up.
    """
    state = daemon.state_directory()
    found = daemon.running(state)
    if not found:
        raise daemon.DaemonError("The endpoint is down. Start it with: workshop up")
    return daemon.environment(state, found.port)


def _wait_for(pid: int) -> None:
    """Wait until a child has ended: it lets go of its port and its lock a moment before."""
    deadline = time.monotonic() + END_SECONDS
    with contextlib.suppress(ChildProcessError):  # not our child, or waited for already
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.05)


def point_here(found: daemon.Running) -> None:
    """Set this process's AWS variables for the local endpoint; `point_back` undoes it."""
    wanted = daemon.environment(daemon.state_directory(), found.port)
    for name in [*wanted, *daemon.in_the_way(os.environ)]:
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
