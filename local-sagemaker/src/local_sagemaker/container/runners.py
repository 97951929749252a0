"""The toolkit's launchers, with `remote` in the place of sshd, and where the instances are.

The command line is the toolkit's own. What differs is how a master knows that a worker is
there, how it starts a process on it, and that nobody sleeps 30 s at the end.
"""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

from sagemaker_training import (
    environment,
    errors,
    logging_config,
    mpi,
    process,
    runner,
    smdataparallel,
    torch_distributed,
)

from local_sagemaker.container import remote

logger = logging_config.get_logger()


def on_loopback() -> bool:
    """Whether the instances are plain processes, which share the machine's loopback."""
    return "LOCAL_SAGEMAKER_PORTS" in os.environ


def address(host: str, port: int) -> str:
    """`host:port`, as AWS has it; on loopback, the port that stands in for it."""
    if not on_loopback():
        return f"{host}:{port}"
    ports = json.loads(os.environ["LOCAL_SAGEMAKER_PORTS"])
    return f"localhost:{ports[host][str(port)]}"


class WorkerRunner(mpi.WorkerRunner):
    """Serves the master's requests until the master has finished."""

    def run(self, wait: bool = True, capture_error: bool = False) -> None:
        logger.info("Starting MPI run as worker node.")
        if on_loopback():
            logger.info("No namespaces: the master starts every rank of this job.")
            return
        remote.Server(self._current_host).done.wait()
        logger.info("MPI process finished.")


class _Master(process.ProcessRunner):
    """What the two kinds of master share."""

    _hosts: list[str]
    _master_hostname: str

    def _command(self) -> list[str]:
        return self._create_command()

    def _setup(self) -> None:
        if on_loopback():
            return
        for host in self._workers():
            try:
                remote.wait_for(host, logger.info)
            except OSError as error:
                raise errors.ClientError(
                    f"Cannot connect to host {host}: {error}. On AWS this is a security "
                    "group that does not let the instances reach each other."
                ) from error
            logger.info("Worker %s available for communication", host)

    def _workers(self) -> list[str]:
        return [host for host in self._hosts if host != self._master_hostname]

    def run(self, wait: bool = True, capture_error: bool = False):
        self._setup()
        command = self._command()
        logging_config.log_script_invocation(command, self._env_vars)
        try:
            return process.check_error(
                command,
                [errors.ExecuteUserScriptError],
                self._processes_per_host,
                capture_error=capture_error,
                cwd=environment.code_dir,
            )
        finally:
            if not on_loopback():
                for host in self._workers():
                    remote.request(host, done=True)


class MpiMaster(_Master, mpi.MasterRunner):
    """`mpirun` over the job's instances."""


class SmddpMaster(_Master, smdataparallel.SMDataParallelRunner):
    """The toolkit's SMDDP launcher: mpirun as well; smddprun exists only on AWS."""

    def _command(self) -> list[str]:
        script = process.ProcessRunner._create_command(self)
        return self._create_command() + script


class TorchrunRunner(torch_distributed.TorchDistributedRunner):
    """torchrun; on loopback, where algo-1 is no address, the master is a port there."""

    def _create_command(self) -> list[str]:
        command = super()._create_command()
        if on_loopback():
            name, port = address(self._master_hostname, 7777).split(":")
            for option, value in {"--master_addr": name, "--master_port": port}.items():
                if option in command:
                    command[command.index(option) + 1] = value
        return command


def install() -> None:
    """Let the toolkit's own choice of a runner find these classes."""
    # In the module that chooses: in their own modules `super(MasterRunner, self)` needs the names.
    runner.mpi = SimpleNamespace(MasterRunner=MpiMaster, WorkerRunner=WorkerRunner)
    runner.smdataparallel = SimpleNamespace(SMDataParallelRunner=SmddpMaster)
    runner.torch_distributed = SimpleNamespace(TorchDistributedRunner=TorchrunRunner)
