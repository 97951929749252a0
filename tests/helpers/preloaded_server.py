"""Runs Python programs in forks of a process that has imported the slow modules already.

    python preloaded_server.py MODULE ...

Each line of standard input is {"argv": [...], "cwd": ..., "env": {...}, "said": FILE, "seconds":
N}: `argv[0]` is a script, or "-m" before a module's name. The program's standard output and error
go into FILE. The answer is a line with its exit status, 124 where it took too long. To the
program it looks as if it had been started by itself; the test saves the seconds of the imports.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import sys
import time
import traceback


def main() -> None:
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a module prints while it is imported is no answer
    for name in sys.argv[1:]:
        importlib.import_module(name)
    print("ready", file=answers)
    for line in sys.stdin:
        task = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(task)
        print(_status(pid, time.monotonic() + task["seconds"]), file=answers)


def _become(task: dict) -> None:
    """Be the program. Never returns."""
    output = os.open(task["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    null = os.open(os.devnull, os.O_RDONLY)
    for fd, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(fd, target)
    os.setsid()
    os.chdir(task["cwd"])
    os.environ.clear()
    os.environ.update(task["env"])
    code = 1
    try:
        _run(task["argv"])
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(argv: list[str]) -> None:
    if argv[0] == "-m":
        sys.argv = argv[1:]
        runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = argv
        sys.path.insert(0, os.path.dirname(argv[0]))
        runpy.run_path(argv[0], run_name="__main__")


def _status(pid: int, deadline: float) -> int:
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 124


if __name__ == "__main__":
    main()
