"""`python3 -m tools.setup`: set the kit up in .venv, or return at once when it is set up.

python3 -m tools.setup                 set up when missing or out of date
python3 -m tools.setup --force         check every step (make setup)
python3 -m tools.setup --horovod-here  only Horovod, into the Python that runs this (conda)
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools.setup", description=__doc__.splitlines()[0])
    parser.add_argument("--force", action="store_true", help="check every step")
    parser.add_argument("--python", help="the Python to make .venv from")
    parser.add_argument("--horovod-here", action="store_true", help="for conda: Horovod only")
    return parser.parse_args()


def set_up(python: str | None) -> None:
    """Complete .venv. A .venv that an earlier set-up did not finish is made again."""
    from tools.setup import environment, horovod, state

    start, outdated = time.monotonic(), state.outdated()
    uv = environment.install_uv()
    environment.make_venv(uv, python)
    settings = environment.uv_settings(environment.PYTHON)
    environment.install_locked(uv, settings)
    if outdated:
        environment.install_kit(uv, settings)
    horovod.install_horovod(state.VENV, uv, settings)
    state.write_json(state.STAMP, {"key": state.key()})
    print(f"Set up in {time.monotonic() - start:.0f} s: {state.VENV}")


def horovod_here() -> None:
    """Build Horovod for the conda environment whose Python runs this; exit 1 if that fails."""
    from tools.setup import environment, horovod, state

    prefix = Path(sys.prefix)
    if prefix == Path(sys.base_prefix) and not (prefix / "conda-meta").exists():
        sys.exit("Activate the environment first: this Python belongs to the system.")
    settings = environment.uv_settings(Path(sys.executable))
    horovod.install_horovod(prefix, environment.install_uv(), settings)
    sys.exit(0 if state.horovod_state(prefix) == "installed" else 1)


def main() -> None:
    if sys.platform == "win32":
        sys.exit("Windows: run this kit inside WSL 2, where it is a Linux machine.")
    from tools.setup import state

    arguments = options()
    if not (arguments.force or arguments.python or arguments.horovod_here or state.outdated()):
        return
    from tools.setup.steps import SetupError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        with state.one_at_a_time():
            if arguments.horovod_here:
                horovod_here()
            if arguments.force or arguments.python or state.outdated():
                set_up(arguments.python)
    except SetupError as error:
        sys.exit(f"\nThe set-up stopped.\n{error}")
    except KeyboardInterrupt:
        print("\nInterrupted. The same command finishes the set-up; downloads are kept.")
        sys.exit(130)


if __name__ == "__main__":
    main()
