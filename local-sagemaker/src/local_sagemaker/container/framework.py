"""The framework module: chooses the launcher, as SageMaker's images do.

The toolkit calls `main` (SAGEMAKER_TRAINING_MODULE names it). Which launcher runs follows
from the hyperparameters that the SDK made of `distribution=`.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from sagemaker_training import (
    entry_point,
    environment,
    errors,
    logging_config,
    mapping,
    params,
    runner,
)

from local_sagemaker.container import job_notes, runners, toolkit_patches
from local_sagemaker.container.runners import address

WORKER_PORT = 2222
PS_PORT = 2223
MULTI_WORKER_PORT = 8890
MAX_PROCESSES = 1000  # of MPI, on an instance
logger = logging_config.get_logger()


def main() -> None:
    """Run the user's script on this instance. Called by the toolkit."""
    toolkit_patches.patch()
    runners.install()
    env = environment.Environment()
    parameters = env.additional_framework_parameters
    launcher = next((name for name in LAUNCHERS if parameters.get(name)), None)
    _print_differences(env, launcher)
    if "pytorch" in os.environ.get("LOCAL_SAGEMAKER_IMAGE", ""):
        _pytorch_variables(env)
    start = LAUNCHERS[launcher][1] if launcher else _script
    start(env)


def _script(env: environment.Environment, variables: dict | None = None) -> None:
    """The script by itself, with `variables` beside the toolkit's."""
    _run(env, runner.ProcessRunnerType, variables)


def _run(env: environment.Environment, runner_type: object, extra: dict | None = None) -> None:
    entry_point.run(
        uri=env.module_dir,
        user_entry_point=env.user_entry_point,
        args=mapping.to_cmd_args(env.hyperparameters),
        env_vars={**env.to_env_vars(), **(extra or {})},
        capture_error=True,
        runner_type=runner_type,
    )


def _parameter_server(env: environment.Environment) -> None:
    """One parameter server beside the script on every host; workers outlive the master."""
    if len(env.hosts) == 1:
        return _script(env)
    config = parameter_server_config(env.hosts, env.current_host)
    index = env.hosts.index(env.current_host)
    logger.info("Launching parameter server process")
    module = "local_sagemaker.container.parameter_server"
    server = [sys.executable, "-m", module, json.dumps(config["cluster"]), str(index)]
    process = subprocess.Popen(server, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"})
    logger.info("Launching worker process")
    try:
        _script(env, {"TF_CONFIG": json.dumps(config)})
        if env.current_host != env.hosts[0]:
            _wait_until_down(config["cluster"]["master"][0])
    finally:
        process.kill()


def parameter_server_config(hosts: list[str], current_host: str) -> dict:
    """TF_CONFIG of the script on `current_host`, as SageMaker's TensorFlow images set it
    (sagemaker-tensorflow-training 20.5.0). hosts: all, sorted, at least two.

    Two things surprise people. The form is TensorFlow 1's: the first host is `master`, a name that
    TensorFlow 2 does not know (it says `chief`), and EVERY host is also a parameter server. And it
    is set only when there is more than one host.
    """
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


def _multi_worker_mirrored(env: environment.Environment) -> None:
    """The script on every host, each a worker in TF_CONFIG."""
    config = {
        "cluster": {"worker": [address(host, MULTI_WORKER_PORT) for host in env.hosts]},
        "environment": "cloud",
        "task": {"index": env.hosts.index(env.current_host), "type": "worker"},
    }
    _script(env, {"TF_CONFIG": json.dumps(config)})


def _mpi(env: environment.Environment) -> None:
    count = env.additional_framework_parameters.get(params.MPI_PROCESSES_PER_HOST)
    if isinstance(count, int) and count > MAX_PROCESSES:  # mpirun alone would take the memory
        raise errors.ClientError(
            f"processes_per_host is {count:,}. The emulator starts at most "
            f"{MAX_PROCESSES:,} on an instance."
        )
    if count:
        _run(env, _runner(env, runner.MPIRunnerType))
    else:
        _for_each_gpu(runner.MPIRunnerType, env)


def _for_each_gpu(kind: object, env: environment.Environment) -> None:
    """The toolkit starts one process per GPU. This machine need not have the GPUs of the instance
    type that was asked for: the number of processes stays the request's."""
    gpus = int(os.environ.get("LOCAL_SAGEMAKER_GPUS", "0"))
    _run(env, _runner(env, kind, {params.MPI_PROCESSES_PER_HOST: gpus or None}))


_torchrun = partial(_for_each_gpu, runner.TorchDistributedRunnerType)
_smddp = partial(_for_each_gpu, runner.SMDataParallelRunnerType)


def _runner(env: environment.Environment, kind: object, options: dict | None = None) -> object:
    """The toolkit's choice of a runner, among the classes of runners.py."""
    args, variables = mapping.to_cmd_args(env.hyperparameters), env.to_env_vars()
    return runner.get(kind, env.user_entry_point, args, variables, options)


def _wait_until_down(master: str) -> None:
    """A worker's parameter server is needed until the master has finished."""
    name, port = master.split(":")
    while True:
        try:
            socket.create_connection((name, int(port)), timeout=5).close()
        except OSError:
            logger.info("master %s is down, stopping parameter server", master)
            return
        time.sleep(0.1)


def _pytorch_variables(env: environment.Environment) -> None:
    """What the PyTorch images set for every script."""
    name, port = address(env.master_hostname, 7777).split(":")
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = name, port
    os.environ["NCCL_SOCKET_IFNAME"] = env.network_interface_name
    os.environ["NCCL_IB_DISABLE"] = "1"
    os.environ["NCCL_DEBUG"] = "WARN"


# The hyperparameter that asks for it -> the SDK's key in `distribution=`, and what runs the script
# so on this instance. Where two are asked for, the first runs.
LAUNCHERS: dict[str, tuple[str, Callable]] = {
    "sagemaker_parameter_server_enabled": ("parameter_server", _parameter_server),
    "sagemaker_multi_worker_mirrored_strategy_enabled": (
        "multi_worker_mirrored_strategy",
        _multi_worker_mirrored,
    ),
    "sagemaker_mpi_enabled": ("mpi", _mpi),
    "sagemaker_torch_distributed_enabled": ("torch_distributed", _torchrun),
    "sagemaker_distributed_dataparallel_enabled": ("smdistributed", _smddp),
}


def _print_differences(env: environment.Environment, launcher: str | None) -> None:
    """Print once, in the log of the first host, how this job differs from one on AWS."""
    if env.current_host != env.hosts[0]:
        return
    job_notes.print_notes()
    if launcher and LAUNCHERS[launcher][1] is _smddp:
        print(
            "[local] SMDDP exists only on AWS (ml.p4d, ml.p4de). Here gloo has its name: the "
            "same result, but not its speed."
        )
    unknown = [
        key
        for key, value in env.additional_framework_parameters.items()
        if key.endswith("_enabled") and value is True and key not in LAUNCHERS
    ]
    if unknown:
        print(f"[local] unknown launcher {', '.join(unknown)}: ignored, as on AWS.")
    elif len(env.hosts) > 1 and not launcher:
        known = ", ".join(key for key, _ in LAUNCHERS.values())
        print(
            f"[local] {len(env.hosts)} instances and no launcher that SageMaker knows: every "
            "host runs the script by itself, and nothing synchronises them. `distribution=` "
            f"takes one of {known}."
        )
    sys.stdout.flush()
