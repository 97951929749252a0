"""The access key of a state directory: random, and readable by its owner alone.

Loopback is shared by all users of a machine. What keeps the others out is that every call is
signed with this key (protocol/signatures.py) and that nobody else can read it.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from botocore.credentials import Credentials

from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.storage.files import replace

FILE = "credentials.json"
PREFIX = "LOCAL"  # AWS's keys begin with AKIA or ASIA


@contextlib.contextmanager
def state_errors(state: Path) -> Iterator[None]:
    """Raise EmulatorError for what the system says of the state directory, with what to do."""
    try:
        yield
    except OSError as error:
        raise EmulatorError(
            f"The state directory cannot be used: {error.filename or state}: {error.strerror}. "
            "Choose another with the variable LOCAL_SAGEMAKER_STATE_DIR."
        ) from error


def make_private(state: Path) -> None:
    """Make the state directory if it is missing, and close it to other users.

    Raises EmulatorError where another user owns it or may have put files into it, OSError where it
    cannot be made.
    """
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = state.stat()
    if status.st_uid != os.geteuid():
        raise EmulatorError(
            f"The state directory {state} belongs to another user (uid {status.st_uid}): choose "
            "one of your own with the variable LOCAL_SAGEMAKER_STATE_DIR."
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise EmulatorError(
            f"Other users may write to the state directory {state}: see that nothing in it is "
            f"theirs and run `chmod 700 {state}`, or choose another with the variable "
            "LOCAL_SAGEMAKER_STATE_DIR."
        )
    if stat.S_IMODE(status.st_mode) != 0o700:
        state.chmod(0o700)


def load(state: Path) -> Credentials:
    """The key of a state directory; the first call makes it. Raises EmulatorError, OSError."""
    make_private(state)
    path = state / FILE
    if not path.exists():
        made = {
            "access_key_id": PREFIX + base64.b32encode(secrets.token_bytes(10)).decode()[:15],
            "secret_access_key": secrets.token_urlsafe(30),
        }
        replace(path, json.dumps(made).encode())
        path.chmod(0o600)  # until then the directory has kept it
    try:
        key = json.loads(path.read_text())
        return Credentials(key["access_key_id"], key["secret_access_key"])
    except (ValueError, KeyError, TypeError) as error:
        raise EmulatorError(
            f"{path} does not hold an access key: remove it, and start the emulator again."
        ) from error
