"""The emulator's process: bind, restore, serve, save, go down in order."""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from local_sagemaker import credentials
from local_sagemaker.api.managers import Managers
from local_sagemaker.cluster import probe
from local_sagemaker.cluster.spec import MOST_INSTANCES
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.moto_services.state import MotoState, StateError
from local_sagemaker.server.app import Application
from local_sagemaker.server.connections import Handler, Server, room_for_clients
from local_sagemaker.storage.files import remove, replace

LOG = logging.getLogger(__name__)
DOWN_SECONDS = 30.0
GRACE_SECONDS = 20.0
LOCK_SECONDS = 1.0  # who only asks whether the lock is held may hold it for an instant


class CannotServe(Exception):
    """Why the emulator cannot start, with what to do."""


def serve(
    state: Path,
    port: int,
    host: str = "127.0.0.1",
    isolation: str = "auto",
    grace_seconds: float = GRACE_SECONDS,
    most_instances: int = MOST_INSTANCES,
) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises CannotServe when that is not possible.

    state: the directory that holds everything. port: 0 takes a free one; the one taken
    is in `emulator.json` there once the emulator answers.
    """
    with _state_errors(state):
        credentials.make_private(state)
    with _only_one(state), _bind(host, port) as server:
        room_for_clients()
        port = server.server_address[1]
        kind, why = _isolation(isolation)
        LOG.info("instances are %s: %s", kind, why)
        with _state_errors(state):
            _own_temporaries(state)
            own = credentials.of_state(state)
            moto_state = MotoState(state / "moto")
            moto_state.load()
            kept = Managers(state, LocalAws(port, own), kind, grace_seconds, most_instances)
        server.app = Application(kept.operations(), moto_state, own, kept.runtime)
        _serve_until_told(server, moto_state, kept, state, kind, why)


@contextlib.contextmanager
def _state_errors(state: Path) -> Iterator[None]:
    """Whatever is wrong with the state directory, CannotServe says it and what to do."""
    try:
        yield
    except (StateError, credentials.NotPrivate) as error:
        raise CannotServe(str(error)) from error
    except OSError as error:
        raise CannotServe(
            f"The state directory cannot be used: {error.filename or state}: {error.strerror}. "
            "Choose another with the variable LOCAL_SAGEMAKER_STATE_DIR."
        ) from error


def _serve_until_told(server, moto_state, kept, state: Path, kind: str, why: str) -> None:
    told: list[bool] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.append(True))  # a handler takes no lock
    threading.Thread(target=server.serve_forever, daemon=True).start()
    kept.start()
    info = {"pid": os.getpid(), "port": server.server_address[1], "started": time.time()}
    info |= {"host": server.server_address[0], "isolation": kind, "why": why}
    replace(state / "emulator.json", json.dumps(info).encode())
    LOG.info("answering on %s:%s", info["host"], info["port"])
    while not told:
        time.sleep(0.1)
    _end_at_the_latest()
    kept.shut_down()
    server.shutdown()
    moto_state.save()
    (state / "emulator.json").unlink(missing_ok=True)
    # All is on disk. Leaving in the usual way waits for boto3's transfer threads, and one that
    # still uploads waits for this very server, which answers no more.
    logging.shutdown()
    os._exit(0)


def _end_at_the_latest() -> None:
    """End the process after DOWN_SECONDS, whatever still waits.

    Nothing is lost: every request's change was saved before it was answered, and jobs end
    with this process.
    """
    timer = threading.Timer(DOWN_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()


def _own_temporaries(state: Path) -> None:
    """Large bodies pass through temporary files; /tmp may be full, or not be ours to write."""
    folder = state / "tmp"
    if folder.is_dir():
        remove(folder)  # of one that was killed
    folder.mkdir(mode=0o700)
    tempfile.tempdir = str(folder)


@contextlib.contextmanager
def _only_one(state: Path):
    """Hold the state directory's lock: two emulators on one state would ruin it."""
    with _state_errors(state):
        stream = (state / "lock").open("w")
    with stream:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
                raise CannotServe(
                    f"Another emulator uses {state}. `local-sagemaker status` says where it is; "
                    "`local-sagemaker stop` ends it."
                ) from error
        (state / "emulator.json").unlink(missing_ok=True)  # of one that was killed
        yield


def _bind(host: str, port: int) -> Server:
    try:
        return Server(host, port, app=None, handler=Handler)
    except (OSError, SystemExit, OverflowError) as error:  # werkzeug exits on a port in use
        raise CannotServe(
            f"Port {port} on {host} cannot be used: something else listens there, or it is not "
            "allowed. Choose another, for example with `local-sagemaker start --port 4601`."
        ) from error


def _isolation(wanted: str) -> tuple[str, str]:
    try:
        return probe.isolation(wanted)
    except OSError as error:
        raise CannotServe(str(error)) from error
