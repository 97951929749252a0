"""Python runs this file at its start in each process whose PYTHONPATH names this folder.

It waits for the import of a library that makes a process a rank, and then starts the recorder.
workshop.launch.recording sets PYTHONPATH; no script is edited.
"""

import contextlib
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


class _Trigger:
    """Starts the recorder when a library of ranks begins to be imported; finds no module itself."""

    def find_spec(self, name, path=None, target=None):
        """Return None always: the next finder looks for the module."""
        if name in ("torch.distributed", "horovod", "tensorflow"):
            sys.meta_path.remove(self)
            try:
                import workshop_recorder

                workshop_recorder.start(os.environ["WORKSHOP_RECORD"])
            except Exception:  # what helps to find faults must not be one
                pass
        return None


if os.path.isdir(os.environ.get("WORKSHOP_RECORD", "")):
    sys.meta_path.insert(0, _Trigger())

# This file hides another of its name, if the environment has one: run that, too.
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
_this = sys.modules.pop("sitecustomize", None)
with contextlib.suppress(ImportError):
    import sitecustomize  # noqa: F401
if _this is not None:
    sys.modules.setdefault("sitecustomize", _this)  # who imports this file looks for it here
# SageMaker's toolkit makes the ranks' PYTHONPATH of its own sys.path. Before the standard library:
# Debian's has a sitecustomize of its own, which would hide this one there.
sys.path.insert(0, _HERE)
