"""Requests of the emulator's jobs, without what lets `workshop why` ask their ranks."""

from workshop.launch.recording import RECORDER

ADDED = ("LOCAL_SAGEMAKER_FOLDER", "WORKSHOP_RECORD", "TORCH_FR_BUFFER_SIZE")


def not_recorded(request: dict) -> dict:
    """The request as it was written, and as AWS would get it."""
    environment = {k: v for k, v in request["Environment"].items() if k not in ADDED}
    path = environment.pop("PYTHONPATH").removeprefix(str(RECORDER)).removeprefix(":")
    environment |= {"PYTHONPATH": path} if path else {}
    others = {name: value for name, value in request.items() if name != "Environment"}
    return others | ({"Environment": environment} if environment else {})
