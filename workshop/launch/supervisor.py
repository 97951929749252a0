"""A process between this one and a command, which leaves nothing behind.

It ends the command, and all that the command started, when this process asks for it and when this
process is gone, even killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

GRACE_SECONDS = 5.0


def start_guarded(command: list[str], environment: Mapping[str, object]) -> subprocess.Popen[str]:
    """Start a command behind the guard; what is returned is the guard.

    environment: variables besides this process's own. Output and errors come as one text.
    """
    return subprocess.Popen(
        [sys.executable, "-m", "workshop.guard", *command],
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # a Ctrl-C at the terminal reaches this process alone
    )


def _run(command: list[str]) -> int:
    """Run a command; end it and all that it started when told to, or when the parent is gone."""
    import psutil

    parent, ended = os.getppid(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    _adopt_orphans()
    running = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    code = None
    while code is None and not ended.wait(0.1) and os.getppid() == parent:
        code = running.poll()
    everything = psutil.Process().children(recursive=True)
    if code is None:
        for process in everything:  # a rank that is stopped cannot end
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        running.terminate()  # mpirun ends its ranks, the stubborn ones after a while
        psutil.wait_procs(everything, GRACE_SECONDS)
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return running.wait() if code is None else code


def _adopt_orphans() -> None:
    """Ranks of an mpirun that died become children of this process (Linux only)."""
    if sys.platform == "linux":
        import ctypes

        set_child_subreaper = 36  # linux/prctl.h
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


if __name__ == "__main__":
    status = _run(sys.argv[1:])
    sys.exit(status if status >= 0 else 128 - status)
