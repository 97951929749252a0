"""`@patch(owner, name)`: replace an attribute of moto's by a function, one function each.

A patch fits the version of moto that it was written for. Issues of moto's that would make a patch
unnecessary are linked beside it.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import moto

from local_sagemaker.emulator_error import EmulatorError

PATCHED_VERSION = "5.2.5"


def check_version() -> None:
    """Raise EmulatorError for a version of moto whose patches nobody has looked at."""
    if moto.__version__ != PATCHED_VERSION:
        raise EmulatorError(
            f"moto {moto.__version__} is installed, and local_sagemaker/moto_backend/ patches "
            f"moto {PATCHED_VERSION}. Run `pip install moto[server]=={PATCHED_VERSION}`"
        )


def patch(owner: Any, name: str) -> Callable[[Callable], Callable]:
    """Replace `owner.name` by the decorated function, which gets the original as first argument.

    A property stays one, and so does a class method.
    """
    original = inspect.getattr_static(owner, name)
    function = getattr(original, "__func__", original)
    if isinstance(original, property):
        function = original.fget

    def decorate(replacement: Callable) -> Callable:
        @functools.wraps(replacement)
        def patched(*args: Any, **kwargs: Any) -> Any:
            return replacement(function, *args, **kwargs)

        kind = type(original) if isinstance(original, property | classmethod) else None
        setattr(owner, name, kind(patched) if kind else patched)
        return replacement

    return decorate
