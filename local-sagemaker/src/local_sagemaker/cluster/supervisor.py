"""The process that holds a job's instances: `python -m local_sagemaker.cluster.supervisor SPEC`.

SPEC is a file with a pickled ClusterSpec. The emulator writes "stop" to its standard input or
closes it, and reads events from its standard output (see event_loop.py). It ends when every
instance has ended.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from local_sagemaker.cluster.event_loop import emit
from local_sagemaker.cluster.spec import NAMESPACES, ClusterSpec


def main() -> int:
    spec: ClusterSpec = pickle.loads(Path(sys.argv[1]).read_bytes())
    if spec.isolation == NAMESPACES:  # imported when needed: a job waits for this process
        from local_sagemaker.cluster.namespace_instances import run
    else:
        from local_sagemaker.cluster.process_instances import run
    try:
        return run(spec)
    except OSError as error:
        emit(event="error", message=str(error))
        return 1


if __name__ == "__main__":
    sys.exit(main())
