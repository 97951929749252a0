"""What of ModelTrainer's MPI driver needs sshd, with `remote` in its place.

The driver comes in the channel `sm_drivers`. entrypoint.py appends an import of these names to its
mpi_utils.py, where they replace functions of the same names.
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


def bootstrap_worker_node(master_host: str) -> None:
    """Serve the master until it has finished."""
    servers[0].done.wait()


def bootstrap_master_node(worker_hosts: list[str]) -> None:
    """Wait for every worker. Raises OSError if one does not answer."""
    for host in worker_hosts:
        remote.wait_for(host, print)


def write_status_file_to_workers(worker_hosts: list[str]) -> None:
    for host in worker_hosts:
        remote.request(host, done=True)
