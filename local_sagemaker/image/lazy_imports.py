"""Modules that the toolkit imports at its start and a job rarely needs: imported on first use.

boto3 and paramiko are half of the time between an instance's start and its script's.
"""

from __future__ import annotations

import importlib
import os
import sys
import types

MODULES = ("boto3", "boto3.s3", "boto3.s3.transfer", "paramiko")


class LazyModule(types.ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> object:
        package = self.__name__.partition(".")[0]
        for one in MODULES:
            if one.partition(".")[0] == package and isinstance(sys.modules.get(one), LazyModule):
                del sys.modules[one]
        return getattr(importlib.import_module(self.__name__), name)


def install() -> None:
    """Make them lazy in this process. A script is a process of its own."""
    for name in MODULES:
        sys.modules[name] = LazyModule(name)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], last, sys.modules[name])
    # The one thing that the toolkit asks of boto3 in every job.
    region = types.SimpleNamespace(region_name=os.environ.get("AWS_DEFAULT_REGION"))
    sys.modules["boto3"].session = types.SimpleNamespace(Session=lambda: region)
