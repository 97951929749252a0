"""Start a TensorFlow cluster on this machine: N processes of one script, each with its TF_CONFIG.

    python local_tf_cluster.py --workers 2 train_tf_mirrored.py --epochs 5
    python local_tf_cluster.py --workers 2 --ps 1 train_tf_ps.py --epochs 5

TF_CONFIG is what SageMaker's TensorFlow toolkit sets, with free ports of 127.0.0.1 in place of
algo-N. With --ps there is a `master` too, and this program starts the parameter servers, as the
toolkit does. When a process fails, or this program ends, the rest is stopped.

RUN: with 2 workers, with and without servers, on the CPUs of one machine; the tests do so.
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time

SERVE = """
import json, os, tensorflow as tf
config = json.loads(os.environ["TF_CONFIG"])
cluster = config["cluster"]
# A thread for each process that may wait here; the default, one a core, can be too few.
threads = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=sum(map(len, cluster.values())))
tf.distribute.Server(cluster, "ps", config["task"]["index"], "grpc", threads).join()
"""


def free_addresses(count: int) -> list[str]:
    """Return `count` addresses of 127.0.0.1 that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in sockets]
    for listener in sockets:
        listener.close()
    return addresses


def end_with_parent() -> None:
    """Linux: kill this process when the launcher is killed. Alone it would wait for ever."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # 1: PR_SET_PDEATHSIG


def start(command: list[str], workers: int, ps: int = 0) -> dict[str, subprocess.Popen]:
    """Start the cluster; return its processes by name: worker-0, ps-0, master-0, ...

    Args:
        command: what to run for the master and each worker.
        workers, ps: how many; without parameter servers there is no master either.
    """
    roles = {"worker": workers} | ({"master": 1, "ps": ps} if ps else {})
    cluster = {role: free_addresses(count) for role, count in roles.items()}
    serve = [sys.executable, "-c", SERVE]
    processes = {}
    for role, count in roles.items():
        for index in range(count):
            task = {"type": role, "index": index}
            config = {"cluster": cluster, "environment": "cloud", "task": task}
            env = dict(os.environ, TF_CONFIG=json.dumps(config))
            env |= {"CUDA_VISIBLE_DEVICES": ""} if role == "ps" else {}  # a GPU is for a worker
            processes[f"{role}-{index}"] = subprocess.Popen(
                serve if role == "ps" else command, env=env, preexec_fn=end_with_parent
            )
    return processes


def finish(processes: dict[str, subprocess.Popen]) -> int:
    """Wait until the master and all workers have ended, or one has failed; return the status."""
    try:
        while True:
            codes = [p.poll() for name, p in processes.items() if not name.startswith("ps")]
            if any(codes) or None not in codes:
                return int(any(codes))
            time.sleep(0.1)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def main() -> None:
    """Read the arguments, run the cluster, exit with its status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ps", type=int, default=0, help="parameter servers")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the script's own")
    args = parser.parse_args()
    if args.workers < 1 or args.ps < 0:
        parser.error("at least one worker is needed")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` stops the rest
    sys.exit(finish(start([sys.executable, args.script, *args.arguments], args.workers, args.ps)))


if __name__ == "__main__":
    main()
