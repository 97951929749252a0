"""The command of an instance whose request has a ContainerEntrypoint.

    python -m local_sagemaker.image.container COMMAND [ARGUMENT ...]

AWS then runs that command in the image, and the toolkit's `train` is left out: it is for the
command to read /opt/ml/input/config. The sagemaker SDK 3 (ModelTrainer) starts every job so.
"""

from __future__ import annotations

import os
import sys

from local_sagemaker.image import notes

NO_SSHD = (
    "MPI of the SDK's ModelTrainer and of @remote(use_mpirun=True) connects instances by ssh, and "
    "they have no ssh server here. Use an estimator with distribution={'mpi': {'enabled': True}}, "
    "or Torchrun() and use_torchrun=True."
)
SDK_SCRIPT = "/opt/ml/input/data/sm_drivers/sm_train.sh"  # ModelTrainer's own
CANNOT_RUN = 127  # a shell's exit status for a command that it cannot find


def main() -> None:
    """Become the command. Exit 127 if there is none of this name."""
    if os.environ.get("LOCAL_SAGEMAKER_HOST") in (None, "algo-1"):
        notes.say()
    sys.stdout.flush()
    command = sys.argv[1:]
    if _needs_sshd(command):
        failure = "/opt/ml/output/failure"
        with open(failure, "w") as stream:
            stream.write(NO_SSHD)
        sys.exit(f"[local] {NO_SSHD}")
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


def _needs_sshd(command: list[str]) -> bool:
    if "mpirun" in command:  # --distribution mpirun, of @remote's bootstrap script
        return "--distribution" in command
    try:
        with open(SDK_SCRIPT) as stream:
            return "mpi_driver.py" in stream.read()
    except OSError:
        return False


if __name__ == "__main__":
    main()
