"""Start a MultiWorkerMirrored training on this machine: several workers that find each other.

    python scripts/common/launch_workers.py --workers 2 -- --epochs 5

What follows `--` goes to the script. Every process gets the TF_CONFIG that SageMaker's TensorFlow
toolkit would give it, with free ports of 127.0.0.1 in place of algo-N:8890. When one worker fails
the others are stopped: without it they would wait.
"""

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":  # as a program it finds its neighbours as the scripts do
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.launch_ps import free_addresses

_SCRIPTS = Path(__file__).resolve().parents[1]
_POLL_SECONDS = 0.1


def start_workers(command: list[str], workers: int) -> list[subprocess.Popen]:
    """Start `command` once for each worker, with its TF_CONFIG; return the processes by rank."""
    cluster = {"worker": free_addresses(workers)}
    configs = [
        {"cluster": cluster, "environment": "cloud", "task": {"type": "worker", "index": index}}
        for index in range(workers)
    ]
    environments = [dict(os.environ, TF_CONFIG=json.dumps(config)) for config in configs]
    return [
        subprocess.Popen(command, env=env, preexec_fn=_end_with_launcher) for env in environments
    ]


def _end_with_launcher() -> None:
    """Linux: a worker is killed when the launcher is. Alone it would wait for ever."""
    if sys.platform == "linux":
        set_death_signal = 1  # PR_SET_PDEATHSIG of linux/prctl.h
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL, 0, 0, 0)


def finish(processes: list[subprocess.Popen]) -> int:
    """Wait for all; stop the rest when one fails. Return 0, or the first failure's status."""
    try:
        while True:
            codes = [process.poll() for process in processes]
            failed = [code for code in codes if code]
            if failed:
                return failed[0] if failed[0] > 0 else 1
            if None not in codes:
                return 0
            time.sleep(_POLL_SECONDS)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
            process.wait()


def main() -> None:
    """Read the arguments, run the workers, exit with their status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--script", type=Path, default=_SCRIPTS / "train_tf_multiworker.py")
    parser.add_argument("arguments", nargs="*", help="for the script, after --")
    args = parser.parse_args()
    if args.workers < 1:
        parser.error("--workers must be at least 1")
    command = [sys.executable, str(args.script), *args.arguments]
    sys.exit(finish(start_workers(command, args.workers)))


if __name__ == "__main__":
    main()
