"""Start a parameter-server training on this machine: coordinator, workers and servers.

    python scripts/common/launch_ps.py --workers 2 --ps 1 -- --epochs 5

What follows `--` goes to the script. Every process gets the TF_CONFIG that SageMaker's TensorFlow
toolkit would give it, with free ports of 127.0.0.1 in place of algo-N:2222 and algo-N:2223. As
there, the launcher starts the parameter servers and stops them when the coordinator has ended.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

_SCRIPTS = Path(__file__).resolve().parents[1]
_GRACE_SECONDS = 30.0  # what a worker may take to notice that the coordinator has ended


def free_addresses(count: int) -> list[str]:
    """Return `count` addresses of 127.0.0.1 that nothing listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    addresses = [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    for open_socket in sockets:
        open_socket.close()
    return addresses


def start_cluster(
    command: list[str], workers: int, ps: int, output: IO | None = None
) -> dict[str, subprocess.Popen]:
    """Start every process of the cluster; return them by name: master, worker-0, ps-0, ...

    Args:
        command: what to run for the master and each worker.
        workers, ps: how many of each, at least 1.
        output: file for stdout and stderr of all of them; None: this process's own.
    """
    roles = {"master": 1, "ps": ps, "worker": workers}
    free = iter(free_addresses(sum(roles.values())))
    cluster = {role: [next(free) for _ in range(count)] for role, count in roles.items()}
    processes = {}
    for role, count in roles.items():
        for index in range(count):
            config = {
                "cluster": cluster,
                "environment": "cloud",
                "task": {"type": role, "index": index},
            }
            env = dict(os.environ, TF_CONFIG=json.dumps(config))
            serve = [sys.executable, str(Path(__file__).resolve()), "--serve-ps"]
            name = role if role == "master" else f"{role}-{index}"
            processes[name] = subprocess.Popen(
                serve if role == "ps" else command, env=env, stdout=output, stderr=output
            )
    return processes


def finish(processes: dict[str, subprocess.Popen]) -> int:
    """Wait for the master, then the workers; stop the servers. Return the exit status.

    The status is the master's, or, when that is 0, 1 if a worker failed or had to be stopped.
    """
    try:
        status = processes["master"].wait()
        deadline = time.monotonic() + _GRACE_SECONDS
        for name, process in processes.items():
            if name.startswith("worker"):
                try:
                    worker_status = process.wait(max(0.1, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    print(f"error: {name} outlived the coordinator; stopped", file=sys.stderr)
                    worker_status = 1
                status = status or (1 if worker_status else 0)
        return status
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()


def serve_ps() -> None:
    """Be a parameter server until the launcher ends or stops this process."""
    launcher = os.getppid()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU is for a worker
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    config = json.loads(os.environ["TF_CONFIG"])
    tf.distribute.Server(
        tf.train.ClusterSpec(config["cluster"]),
        job_name="ps",
        task_index=config["task"]["index"],
        protocol="grpc",
        # A thread for each process that may wait here, also on a machine with one core.
        config=tf.compat.v1.ConfigProto(
            inter_op_parallelism_threads=sum(map(len, config["cluster"].values()))
        ),
        start=True,
    )
    while os.getppid() == launcher:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Read the arguments, run the cluster, exit with its status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ps", type=int, default=1, help="parameter servers")
    parser.add_argument("--script", type=Path, default=_SCRIPTS / "train_tf_ps.py")
    parser.add_argument("--serve-ps", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help="for the script, after --")
    args = parser.parse_args()
    if args.serve_ps:
        serve_ps()
    if args.workers < 1 or args.ps < 1:
        parser.error("--workers and --ps must be at least 1")
    command = [sys.executable, str(args.script), *args.arguments]
    sys.exit(finish(start_cluster(command, args.workers, args.ps)))


if __name__ == "__main__":
    main()
