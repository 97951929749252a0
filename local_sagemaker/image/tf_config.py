"""TF_CONFIG as SageMaker's TensorFlow images set it (sagemaker-tensorflow-training 20.5.0).

Two things surprise people. The parameter server form is TensorFlow 1's: the first host is
`master`, a name that TensorFlow 2 does not know (it says `chief`), and EVERY host is also a
parameter server. And it is set only when there is more than one host.
"""

from __future__ import annotations

from local_sagemaker.image.hosts import address

WORKER_PORT = 2222
PS_PORT = 2223
MULTI_WORKER_PORT = 8890


def for_parameter_server(hosts: list[str], current_host: str) -> dict:
    """TF_CONFIG of the script on `current_host`. hosts: all, sorted, at least two."""
    master, *workers = hosts
    cluster = {
        "master": [address(master, WORKER_PORT)],
        "ps": [address(host, PS_PORT) for host in hosts],
        "worker": [address(host, WORKER_PORT) for host in workers],
    }
    if current_host == master:
        task = {"index": 0, "type": "master"}
    else:
        task = {"index": workers.index(current_host), "type": "worker"}
    return {"cluster": cluster, "environment": "cloud", "task": task}


def for_multi_worker_mirrored(hosts: list[str], current_host: str) -> dict:
    """TF_CONFIG of the script on `current_host`: everybody is a worker."""
    return {
        "cluster": {"worker": [address(host, MULTI_WORKER_PORT) for host in hosts]},
        "environment": "cloud",
        "task": {"index": hosts.index(current_host), "type": "worker"},
    }
