"""The variables with which every process starts that runs a job or serves a model."""

from __future__ import annotations

import os
import sys
from pathlib import Path

# What a learner set for pip and for certificates must hold on an instance too.
PASSED_ON = ("PIP_", "UV_", "SSL_CERT", "REQUESTS_CA_BUNDLE", "LANG", "LC_", "TZ")
PACKAGES = Path(__file__).parents[2]  # what holds this package


def base_environment() -> dict[str, str]:
    """The variables with which every process starts that runs a job or serves a model."""
    return {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)} | {
        "PATH": os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]]),
        "HOME": os.environ.get("HOME", "/"),
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
