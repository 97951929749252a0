"""The emulator in the background: start it, find it, end it.

Everything about it stands in its state directory: `emulator.json` (pid, port; there while
it answers), `emulator.log`, `credentials.json` (see credentials.py), `lock`, `moto/`, `jobs/`,
`endpoints/`, `transforms/`, `tmp/`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from local_sagemaker import credentials
from local_sagemaker.core.aws import REGION, SDK_DEFAULTS, LocalAws
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.storage.files import remove

DEFAULT_PORT = 4600
CONFLICTING = (
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_REGION",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
)
START_SECONDS = 60
STOP_SECONDS = 45
KILL_SECONDS = 15


@dataclasses.dataclass
class Running:
    """An emulator that answers. isolation: `namespaces` or `processes`; why: the reason."""

    pid: int
    port: int
    isolation: str
    why: str
    started: float

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def state_directory() -> Path:
    """LOCAL_SAGEMAKER_STATE_DIR, or a directory of the user's for programs' state."""
    if chosen := os.environ.get("LOCAL_SAGEMAKER_STATE_DIR"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser().absolute() / "local-sagemaker"


def running(state: Path) -> Running | None:
    """The emulator of this state directory, or None. A crashed one counts as none."""
    try:
        emulator = Running(**json.loads((state / "emulator.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return emulator if _locked(state) else None


def _locked(state: Path) -> bool:
    """Whether some process holds the state's lock; the kernel lets go of a dead one's."""
    try:
        with (state / "lock").open() as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def conflicting_variables(environ: Mapping[str, str]) -> list[str]:
    """Variables that would send calls elsewhere, or sign them with somebody else's key."""
    return [name for name in environ if name in CONFLICTING or name.startswith("AWS_ENDPOINT_URL_")]


def start(state: Path, port: int, options: list[str] | None = None) -> Running:
    """Start the emulator in the background and wait until it answers.

    options: more of `local-sagemaker start`. Raises EmulatorError.
    """
    with credentials.state_errors(state):
        credentials.make_private(state)
        log = (state / "emulator.log").open("ab")
    offset = log.tell()
    command = [sys.executable, "-m", "local_sagemaker", "start", "--foreground"]
    with log:
        process = subprocess.Popen(
            [*command, "--state", str(state), "--port", str(port), *(options or [])],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=_emulator_environment(),
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        emulator = running(state)
        if emulator and emulator.pid == process.pid:
            return emulator
        if process.poll() is not None:
            raise EmulatorError(_last_line(state / "emulator.log", offset))
        time.sleep(0.05)
    process.kill()
    raise EmulatorError(f"No answer within {START_SECONDS} s. Its log: {state / 'emulator.log'}")


def _emulator_environment() -> dict[str, str]:
    conflicting = conflicting_variables(os.environ)
    env = {name: value for name, value in os.environ.items() if name not in conflicting}
    return {**env, "PYTHONPATH": str(Path(__file__).parent.parent)}


def _last_line(log: Path, offset: int) -> str:
    text = log.read_bytes()[offset:].decode("utf-8", "replace").strip()
    if not text and not shutil.disk_usage(log).free:
        return f"The disk of the state directory {log.parent} is full: free some space."
    last = text.splitlines()[-1] if text else "it ended without an error message"
    return last.removeprefix("Error: ")


def stop(state: Path) -> bool:
    """End the emulator and its jobs; False if none was running. Raises EmulatorError."""
    emulator = running(state)
    if emulator is None:
        return False
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        with contextlib.suppress(ProcessLookupError):  # it is ending already
            os.kill(emulator.pid, number)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not _locked(state):
                (state / "emulator.json").unlink(missing_ok=True)
                return True
            time.sleep(0.05)
    raise EmulatorError(f"Process {emulator.pid} did not end within {seconds} s of being killed.")


def forget(state: Path) -> None:
    """Remove jobs, buckets and everything else. The emulator must be down."""
    for name in ("moto", "jobs", "endpoints", "transforms", "tmp"):
        if (state / name).is_dir():
            remove(state / name)
    for name in ("emulator.json", "emulator.log", "sdk-defaults.yaml", credentials.FILE):
        (state / name).unlink(missing_ok=True)


def environment(state: Path, port: int) -> dict[str, str]:
    """The variables that point the sagemaker SDK, boto3 and the AWS CLI to the emulator.

    The SDK's own defaults file is given two entries: no telemetry, and a default bucket,
    because the SDK would otherwise ask STS at an address on the internet for the account.
    Version 3 of the SDK is told not to look a role up in IAM: here a role need not exist.
    Raises EmulatorError where the state directory is not the user's own.
    """
    variables = LocalAws(port, credentials.load(state)).variables(REGION)
    defaults = state / "sdk-defaults.yaml"
    if not defaults.exists() or defaults.read_text() != SDK_DEFAULTS:
        defaults.write_text(SDK_DEFAULTS)
    variables["SAGEMAKER_USER_CONFIG_OVERRIDE"] = str(defaults)
    variables["SAGEMAKER_VALIDATE_ROLE"] = "false"
    if any(name.lower() in ("http_proxy", "all_proxy") for name in os.environ):
        direct = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
        if "127.0.0.1" not in direct.split(","):
            direct = ",".join(filter(None, [direct, "127.0.0.1"]))
        variables |= {"NO_PROXY": direct, "no_proxy": direct}
    return variables


def environment_of_running() -> dict[str, str]:
    """The variables by which a shell's programs find the emulator that is up.

    Raises EmulatorError if none is up.
    """
    state = state_directory()
    return environment(state, _up(state).port)


def client(service: str):
    """A boto3 client for the emulator that is up, whatever the shell's AWS variables say.

    Only where they point to this emulator does AWS_DEFAULT_REGION count; else it is REGION.
    Raises EmulatorError if none is up.
    """
    state, region = state_directory(), REGION
    emulator = _up(state)
    if os.environ.get("AWS_ENDPOINT_URL") == emulator.url:
        region = os.environ.get("AWS_DEFAULT_REGION", REGION)
    for name in conflicting_variables(os.environ):
        del os.environ[name]
    return LocalAws(emulator.port, credentials.load(state)).client(service, region)


def _up(state: Path) -> Running:
    emulator = running(state)
    if not emulator:
        raise EmulatorError("The emulator is down. Start it with: local-sagemaker start")
    return emulator
