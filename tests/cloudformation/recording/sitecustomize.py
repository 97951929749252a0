"""Notes every call that this process makes of AWS by botocore, in the order in which it makes them.

Put this folder in PYTHONPATH and a file's path in RECORD_AWS_CALLS: a line of JSON a call, with the
number of the notebook's cell that made it.
"""

import json
import os
import sys


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
    import wrapt

    wrapt.when_imported("botocore.client")(watch)
