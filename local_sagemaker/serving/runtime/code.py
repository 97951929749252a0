"""Imports the code that came with a model."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path

from local_sagemaker.serving.runtime.messages import CannotLoad


def import_file(path: Path):
    """The module of a file. Raises CannotLoad with the traceback's last line."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        print(traceback.format_exc(), flush=True)
        raise CannotLoad(
            f"code/{path.name} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return module
