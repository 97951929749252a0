"""The command of every instance: `python -m local_sagemaker.container.entrypoint [COMMAND ...]`.

AWS's images run the command `train` of the sagemaker-training toolkit. This is the same command,
with two differences that a container runtime would make for it.

A request that has a ContainerEntrypoint gives a COMMAND: AWS then runs that in the image, and the
toolkit's `train` is left out. It is for the command to read /opt/ml/input/config. The sagemaker
SDK 3 (ModelTrainer) starts every job so.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import types

from local_sagemaker.container import job_notes, sdk_mpi

# What the SDK starts MPI with: ModelTrainer's, and that of @remote(use_mpirun=True).
SDK_MPI = (
    "/opt/ml/input/data/sm_drivers/distributed_drivers/mpi_utils.py",
    "/opt/ml/input/data/sagemaker_remote_function_bootstrap/mpi_utils_remote.py",
)
CANNOT_RUN = 127  # a shell's exit status for a command that it cannot find


def main() -> None:
    if command := sys.argv[1:]:
        become(command)
    # A container's pid 1 ignores SIGTERM, and its children do not: a script gets the
    # signal and its grace period, while the toolkit stays to report how the script ended.
    # (A handler, not SIG_IGN: that would be inherited by the script.)
    signal.signal(signal.SIGTERM, lambda *_: None)
    if os.environ.get("LOCAL_SAGEMAKER_NO_LAYER"):
        _install_beside_the_job()
    # Every instance pays for the toolkit's import. `remote` stands in for its ssh client, and the
    # garbage collector would go through what an import makes, again and again.
    sys.modules.setdefault("paramiko", types.ModuleType("paramiko"))
    gc.disable()
    from sagemaker_training import trainer

    gc.enable()
    trainer.train()


def become(command: list[str]) -> None:
    """Become the command. Exit 127 if there is none of this name."""
    if os.environ.get("LOCAL_SAGEMAKER_HOST") in (None, "algo-1"):
        job_notes.print_notes()
    sys.stdout.flush()
    for path in filter(os.path.exists, SDK_MPI):
        with open(path, "r+") as stream:
            functions, main, rest = stream.read().partition("\nif __name__ ==")
            stream.seek(0)
            stream.write(f"{functions}\nfrom {sdk_mpi.__name__} import *\n{main}{rest}")
    if not os.access(".", os.W_OK):
        # An image's working directory is its own to write; @remote unpacks its workspace there.
        os.chdir(os.environ["HOME"])
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(
            f"ContainerEntrypoint {command[0]!r} cannot be run: {error.strerror}. There is no "
            "image here: it has to be a program of this machine.\n"
        )
        sys.exit(CANNOT_RUN)


def _install_beside_the_job() -> None:
    """Without a writable layer, keep requirements.txt out of the learner's environment."""
    site = os.path.join(os.environ.get("SAGEMAKER_BASE_DIR", "/opt/ml"), "site-packages")
    os.environ["PIP_TARGET"] = site
    os.environ["PYTHONPATH"] = os.pathsep.join(
        filter(None, [site, os.environ.get("PYTHONPATH", "")])
    )
    sys.path.insert(0, site)


if __name__ == "__main__":
    main()
