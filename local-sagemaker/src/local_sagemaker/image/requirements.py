"""What a job's requirements.txt may replace: no framework that it does not name.

`torchvision` alone would draw the newest torch, with gigabytes of CUDA, for each instance, and the
script would run with another torch than the one that its log tells of.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

FRAMEWORKS = ("torch", "tensorflow", "keras", "tf-keras", "horovod")
NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")


def constraints(text: str) -> list[str]:
    """Lines for pip's constraints. text: a requirements.txt."""
    named = {
        re.sub(r"[._]", "-", found[1]).lower()
        for line in text.splitlines()
        if (found := NAME.match(line))
    }
    lines = []
    for name in FRAMEWORKS:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if name not in named:
            lines.append(f"{name}=={version}")
        if name == "torch" and version.endswith("+cpu") and "torch" not in named:
            lines += _beside(version)
    return lines


def _beside(version: str) -> list[str]:
    """The builds of PyTorch's own packages that fit a torch without CUDA; others do not load.

    torch 2.13.0 has torchaudio 2.13.0 and torchvision 0.28.0: the numbers go together.
    """
    _, minor, patch = version.removesuffix("+cpu").split(".")
    return [f"torchvision==0.{int(minor) + 15}.{patch}+cpu", f"torchaudio=={version}"]


def constrained(install: Callable) -> Callable:
    """The toolkit's `install`, whose pip keeps to `constraints`."""

    def run(path: str, capture_error: bool = False) -> None:
        file = Path(path, "requirements.txt")
        lines = constraints(file.read_text(errors="replace") if file.is_file() else "")
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as stream:
            stream.write("\n".join(lines))
            stream.flush()
            before = os.environ.get("PIP_CONSTRAINT")
            os.environ["PIP_CONSTRAINT"] = " ".join(filter(None, [before, stream.name]))
            try:
                install(path, capture_error)
            finally:
                os.environ.pop("PIP_CONSTRAINT")
                os.environ.update({"PIP_CONSTRAINT": before} if before else {})

    return run
