"""Notes every call that this process makes of AWS by botocore, in the order in which it makes them.

Put this folder in PYTHONPATH and a file's path in RECORD_AWS_CALLS: a line of JSON a call, with the
number of the notebook's cell that made it.
"""

import importlib.abc
import importlib.util
import json
import os
import sys


class Watcher(importlib.abc.MetaPathFinder):
    """Waits for a module, which most processes never import, and changes it."""

    def __init__(self, name, change):
        self.name, self.change = name, change

    def find_spec(self, name, path, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def then_change(module):
            execute(module)
            self.change(module)

        spec.loader.exec_module = then_change
        return spec


def watch(client_module):
    client_class = client_module.BaseClient
    call = client_class._make_api_call

    def noted(self, operation, request):
        service = self.meta.service_model.service_name
        line = {"service": service, "operation": operation, "request": request, "cell": cell()}
        with open(os.environ["RECORD_AWS_CALLS"], "a") as file:
            file.write(json.dumps(line, default=lambda value: f"<{type(value).__name__}>") + "\n")
        return call(self, operation, request)

    client_class._make_api_call = noted


def cell():
    """The number in brackets of the cell that runs; None outside a notebook."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell.execution_count if shell else None


if "RECORD_AWS_CALLS" in os.environ:
    sys.meta_path.insert(0, Watcher("botocore.client", watch))
