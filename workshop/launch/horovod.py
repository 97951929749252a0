"""Is Horovod here? If not: why, and what to do. The Horovod lessons and the doctor ask this."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class HorovodStatus:
    """available: whether scripts can import it. why and do are empty where it is."""

    available: bool
    version: str = ""
    why: str = ""
    do: str = ""

    def __str__(self) -> str:
        return f"Horovod {self.version}" if self.available else f"{self.why}. To have it: {self.do}"


def horovod_status() -> HorovodStatus:
    """Look for Horovod with its TensorFlow library, without importing TensorFlow."""
    spec = importlib.util.find_spec("horovod")
    folders = spec.submodule_search_locations if spec else None
    libraries = [lib for f in folders or [] for lib in Path(f, "tensorflow").glob("mpi_lib*.so")]
    if libraries:
        return HorovodStatus(True, importlib.metadata.version("horovod"))
    left_by_set_up = Path(sys.prefix) / "horovod.json"
    try:
        content = json.loads(left_by_set_up.read_text())
        return HorovodStatus(False, why=content["reason"], do=content["do"])
    except (OSError, ValueError, KeyError):
        return HorovodStatus(False, why="Horovod is not installed", do="run make setup")
