"""The emulator's process: bind, restore, serve, save, go down in order."""

from __future__ import annotations

import contextlib
import dataclasses
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

from local_sagemaker import credentials, daemon
from local_sagemaker.api.managers import Managers
from local_sagemaker.cluster import probe
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.moto_backend.state import MotoState
from local_sagemaker.server.app import Emulator
from local_sagemaker.server.http import RequestHandler, Server
from local_sagemaker.storage.files import remove, replace
from local_sagemaker.training.connectivity import service_port

LOG = logging.getLogger(__name__)
DOWN_SECONDS = 30.0
LOCK_SECONDS = 1.0  # a status check may hold the lock for an instant


def serve(state: Path, port: int, isolation: str, grace_seconds: float) -> None:
    """Serve until SIGTERM or Ctrl-C. Raises EmulatorError when that is not possible.

    state: the directory that holds everything. port: 0 takes a free one; the one taken
    is in `emulator.json` there once the emulator answers.
    """
    service_port()
    with credentials.state_errors(state):
        credentials.make_private(state)
    with _only_one(state), _bind(port) as server:
        port = server.server_address[1]
        kind, why = probe.isolation(isolation)
        LOG.info("instances are %s: %s", kind, why)
        with credentials.state_errors(state):
            _move_temporary_files(state)
            owner = credentials.load(state)
            moto_state = MotoState(state / "moto")
            moto_state.load()
            aws = LocalAws(port, owner, moto_state)
            managers = Managers(state, aws, kind, grace_seconds)
            emulator = Emulator(managers.operations(), moto_state, owner, managers.runtime)
        server.respond = emulator
        _serve_until_signal(server, managers, state, kind, why)


def _serve_until_signal(
    server: Server, managers: Managers, state: Path, kind: str, why: str
) -> None:
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: signals.append(number))  # takes no lock
    threading.Thread(target=server.serve_forever, daemon=True).start()
    managers.start()
    port = server.server_address[1]
    info = daemon.Running(os.getpid(), port, kind, why, time.time())
    replace(state / "emulator.json", json.dumps(dataclasses.asdict(info)).encode())
    LOG.info("answering on %s", info.url)
    while not signals:
        time.sleep(0.1)
    # Then it ends, whatever still waits. Nothing is lost: every change was saved before its request
    # was answered, and jobs end with this process.
    timer = threading.Timer(DOWN_SECONDS, os._exit, (1,))
    timer.daemon = True
    timer.start()
    managers.shut_down()
    server.shutdown()
    (state / "emulator.json").unlink(missing_ok=True)
    # All is on disk. Leaving in the usual way waits for boto3's transfer threads, and one that
    # still uploads waits for this very server, which answers no more.
    logging.shutdown()
    os._exit(0)


def _move_temporary_files(state: Path) -> None:
    """Large bodies pass through temporary files; /tmp may be full, or not be ours to write."""
    folder = state / "tmp"
    if folder.is_dir():
        remove(folder)  # of one that was killed
    folder.mkdir(mode=0o700)
    tempfile.tempdir = str(folder)


@contextlib.contextmanager
def _only_one(state: Path) -> Iterator[None]:
    """Hold the state directory's lock: two emulators on one state would damage it."""
    with credentials.state_errors(state):
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
                raise EmulatorError(
                    f"Another emulator uses {state}. `local-sagemaker status` says where it is; "
                    "`local-sagemaker stop` ends it."
                ) from error
        (state / "emulator.json").unlink(missing_ok=True)  # of one that was killed
        yield


def _bind(port: int) -> Server:
    try:
        return Server("127.0.0.1", port, app=None, handler=RequestHandler)  # type: ignore[arg-type]
    except (OSError, SystemExit, OverflowError) as error:  # werkzeug exits on a port in use
        raise EmulatorError(
            f"Port {port} of 127.0.0.1 cannot be used: something else listens there, or it is not "
            "allowed. Choose another, for example with `local-sagemaker start --port 4601`."
        ) from error
