"""The folder of this machine that a job asks for, by a variable of its Environment."""

from __future__ import annotations

import os
from pathlib import Path

from local_sagemaker.protocol.errors import validation

VARIABLE = "LOCAL_SAGEMAKER_FOLDER"


def shared_folder(request: dict) -> str:
    """The folder that the job's instances may write where this machine has it; empty if none.

    Raises AwsError (ValidationException) for one that does not exist or is not this user's own.
    """
    folder = request.get("Environment", {}).get(VARIABLE, "")
    if folder:
        path = Path(folder)
        if not (path.is_absolute() and path.is_dir() and path.stat().st_uid == os.getuid()):
            raise validation(
                f"Environment's {VARIABLE} is '{folder}'; it must be the absolute path of a folder "
                "of this machine that belongs to the user who started the emulator."
            )
    return folder
