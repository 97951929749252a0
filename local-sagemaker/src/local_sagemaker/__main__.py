"""`python -m local_sagemaker`: the emulator in the foreground."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from local_sagemaker import daemon
from local_sagemaker.cluster.spec import MAX_INSTANCES
from local_sagemaker.server.serve import GRACE_SECONDS, CannotServe, serve


def main() -> int:
    parser = argparse.ArgumentParser(prog="local_sagemaker", description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="directory that holds everything")
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one")
    parser.add_argument("--host", default="127.0.0.1", help="address to bind")
    parser.add_argument("--isolation", choices=["auto", "namespaces", "processes"], default="auto")
    parser.add_argument(
        "--grace", type=float, default=GRACE_SECONDS, help="seconds from SIGTERM to SIGKILL"
    )
    parser.add_argument(
        "--max-instances", type=int, default=MAX_INSTANCES, help="of all jobs that run at once"
    )
    parser.add_argument(
        "--i-know-this-is-not-safe", action="store_true", help="allow a --host that others reach"
    )
    args = parser.parse_args()
    try:
        host = daemon.checked_host(args.host, args.i_know_this_is_not_safe)
    except daemon.EmulatorError as error:
        print(f"local_sagemaker: {error}", file=sys.stderr)
        return 2
    # moto's EC2 begins with 1,300 images in each region, and all would be written with each change.
    os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    try:
        serve(args.state, args.port, host, args.isolation, args.grace, args.max_instances)
    except CannotServe as error:
        print(f"local_sagemaker: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
