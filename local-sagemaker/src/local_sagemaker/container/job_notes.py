"""What the log of a job says first: how it differs from one on AWS."""

from __future__ import annotations

import importlib.metadata
import json
import os


def print_notes() -> None:
    """Print what runs in the image's place, and what else follows from the request."""
    image = os.environ.get("LOCAL_SAGEMAKER_IMAGE", "")
    names = ("tensorflow", "torch", "horovod")
    versions = [f"{name} {version(name) or '(not installed)'}" for name in names]
    print(f"[local] image {image} is not pulled; this machine runs {', '.join(versions)}.")
    if version("horovod"):
        print("[local] this Horovod is built for TensorFlow; horovod.torch is not in it.")
    for note in json.loads(os.environ.get("LOCAL_SAGEMAKER_NOTES", "[]")):
        print(f"[local] {note}", flush=True)


def version(name: str) -> str:
    """The version of an installed package; empty if it is not installed."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
