"""What of the SDK's own MPI drivers needs sshd, with `remote` in its place.

ModelTrainer and @remote bring a driver in a channel of the job. entrypoint.py adds an import of
these names to it, where they replace functions of the same names.
"""

from __future__ import annotations

import os

from local_sagemaker.container import remote

__all__ = [
    "bootstrap_master_node",
    "bootstrap_worker_node",
    "start_sshd_daemon",
    "write_status_file_to_workers",
]
servers: list[remote.Server] = []  # this instance's one


def start_sshd_daemon() -> None:
    servers.append(remote.Server(os.environ["SM_CURRENT_HOST"]))


def bootstrap_worker_node(master_host: str, current_host: str = "") -> None:
    """Serve the master until it has finished."""
    servers[0].done.wait()


def bootstrap_master_node(worker_hosts: list[str]) -> None:
    """Wait for every worker. Raises OSError if one does not answer."""
    for host in worker_hosts:
        remote.wait_for(host, print)


def write_status_file_to_workers(worker_hosts: list[str]) -> None:
    for host in worker_hosts:
        remote.request(host, done=True)
