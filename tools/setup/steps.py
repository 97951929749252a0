"""Run a tool; if it fails, show the end of its output, and what to do."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

# Settings of the surrounding shell, make or environment that must not leak into a tool.
FOREIGN = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX"}
FOREIGN |= {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
PROGRESS_SECONDS = 20
TAIL_LINES = 25
REMEDIES = {
    r"No space left on device|os error 28|Disk quota exceeded": (
        "The disk is full: .venv and the caches take 8 GB, on two disks 8 GB each (with a CPU\n"
        "wheel of torch 5). Free some space (uv cache clean; XDG_CACHE_HOME=/another/disk moves\n"
        "the caches), then run the same command again."
    ),
    r"dns error|connect error|error resolving|Failed to fetch|Network|offline|tunnel|Connection"
    r"|No matching distribution|Could not find a version|there is no version of|timed out": (
        "The package index could not be reached, or lacks this version. Check the connection\n"
        "(https_proxy where you are behind a proxy, PIP_INDEX_URL where you have a mirror), then\n"
        "run the same command again: what was downloaded is kept."
    ),
}


class SetupError(Exception):
    """Something stopped the set-up. The text says what, and what to do."""


def run(title: str, command: list[str], environment: dict[str, str], log: Path) -> None:
    """Run a command, its output appended to `log`, and print its title and seconds.

    The command gets a process group of its own, so that an interrupted set-up can end it with
    everything it started. Raises SetupError when the exit code is not 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    print(f"  {title} ...", end="", flush=True)
    start, process = time.monotonic(), None
    with log.open("ab") as output:
        begin = output.tell()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
            while process.poll() is None:
                try:
                    process.wait(timeout=PROGRESS_SECONDS)
                except subprocess.TimeoutExpired:
                    print(f" {time.monotonic() - start:.0f} s ...", end="", flush=True)
        except BaseException:
            if process is not None:
                end_group(process)
            raise
    print(f" {time.monotonic() - start:.0f} s", flush=True)
    if process.returncode != 0:
        text = log.read_bytes()[begin:].decode(errors="replace")
        end = "\n".join(f"    {line}" for line in text.splitlines()[-TAIL_LINES:])
        remedies = [advice for pattern, advice in REMEDIES.items() if re.search(pattern, text)]
        error = f"{title}: exit code {process.returncode}. The end of {log}:\n{end}"
        raise SetupError("\n".join([error, *remedies[:1]]))


def end_group(process: subprocess.Popen) -> None:
    """End a process and all it started: SIGTERM, 3 s, SIGKILL."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(timeout=3)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def output_of(command: list[str]) -> str:
    """What a command prints; empty if it fails, hangs or does not exist."""
    try:
        done = subprocess.run(command, env=clean_environment(), timeout=60, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def clean_environment(**extra: str) -> dict[str, str]:
    """This process's environment without what belongs to another Python or to make."""
    return {**{k: v for k, v in os.environ.items() if k not in FOREIGN}, **extra}
