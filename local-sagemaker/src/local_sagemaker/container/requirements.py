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

from sagemaker_training import errors

FRAMEWORKS = ("torch", "tensorflow", "keras", "tf-keras", "horovod")
NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
# In pip's log, each line after the time: why it gave up.
PIP_ERROR = re.compile(
    r"^\S+ +(ERROR: (?!ResolutionImpossible).*|The user requested .*)$", re.MULTILINE
)


def constraints(text: str) -> list[str]:
    """Lines for pip's constraints. text: a requirements.txt."""
    named = {
        re.sub(r"[._]", "-", match[1]).lower()
        for line in text.splitlines()
        if (match := NAME.match(line))
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
    """The toolkit's `install`, whose pip keeps to `constraints`, and whose error says why."""

    def run(path: str, capture_error: bool = False) -> None:
        file = Path(path, "requirements.txt")
        lines = constraints(file.read_text(errors="replace") if file.is_file() else "")
        before = dict(os.environ)
        with tempfile.TemporaryDirectory() as folder:
            constraints_file, log = Path(folder, "constraints.txt"), Path(folder, "log")
            constraints_file.write_text("\n".join(lines))
            previous = before.get("PIP_CONSTRAINT")
            os.environ["PIP_CONSTRAINT"] = " ".join(filter(None, [previous, str(constraints_file)]))
            os.environ["PIP_LOG"] = str(log)
            try:
                install(path, capture_error)
            except (errors.InstallRequirementsError, errors.InstallModuleError) as error:
                # The toolkit looks for lines that name an error class of Python's, and pip's don't.
                text = log.read_text(errors="replace") if log.is_file() else ""
                error.output = error.output or "\n".join(dict.fromkeys(PIP_ERROR.findall(text)))
                raise
            finally:
                for name in ("PIP_CONSTRAINT", "PIP_LOG"):
                    os.environ.pop(name)
                    os.environ.update({name: before[name]} if name in before else {})

    return run
