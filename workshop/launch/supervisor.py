"""The supervisor of one command: runs it, and leaves nothing of it behind.

    python supervisor.py PARENT COMMAND...

On SIGTERM, and as soon as the process PARENT is gone, even killed, it ends the command and all
that the command started. What a command that has ended leaves behind is killed. The exit status
is the command's; a command that a signal killed takes the supervisor along by the same signal.

`workshop.launch.processes` starts it, as a file: the supervisor waits for no import of ours.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

POLL_SECONDS = 0.05
GRACE_SECONDS = 5.0  # between SIGTERM and SIGKILL
NOT_FOUND = 127  # a shell's status for a command that cannot be started
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def main(parent: int, command: list[str]) -> None:
    """Supervise the command until it has ended, by itself or because it had to."""
    stop_signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stop_signals.append(number))  # takes no lock
    _prctl(PR_SET_CHILD_SUBREAPER, 1)  # what a dead mpirun leaves becomes this process's child
    try:
        process = subprocess.Popen(
            command,
            close_fds=False,  # those that the command inherits
            preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # a killed supervisor
        )
    except OSError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(NOT_FOUND)
    os.closerange(3, 1024)  # so that a reader sees the end when the command has ended
    while process.poll() is None and not stop_signals and os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    _end_all(process)
    if process.returncode < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(-process.returncode, signal.SIG_DFL)
        os.kill(os.getpid(), -process.returncode)
    sys.exit(process.returncode)


def _end_all(command: subprocess.Popen) -> None:
    import psutil

    this = psutil.Process()
    if command.poll() is None:
        processes = this.children(recursive=True)
        for process in processes:  # one that is stopped cannot end
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)
        command.terminate()  # mpirun ends its ranks, the stubborn ones after a while
        psutil.wait_procs(processes, GRACE_SECONDS)
    for process in this.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    command.wait()


def _prctl(option: int, value: int) -> None:
    if LIBC:
        LIBC.prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
