"""What the log of a job says first: how it differs from one on AWS."""

from __future__ import annotations

import importlib.metadata
import json
import os


def print_notes() -> None:
    """Print what runs in the image's place, and what else follows from the request."""
    image = os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
    versions = [f"{name} {_version(name)}" for name in ("tensorflow", "torch", "horovod")]
    print(f"[local] image {image} is not pulled; this machine runs {', '.join(versions)}.")
    if _version("horovod") != "(not installed)":
        print("[local] this Horovod is built for TensorFlow; horovod.torch is not in it.")
    for note in json.loads(os.environ.get("LOCAL_SAGEMAKER_NOTES", "[]")):
        print(f"[local] {note}", flush=True)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"
