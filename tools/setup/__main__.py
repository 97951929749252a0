"""`python3 -m tools.setup`: set the kit up in .venv, or say at once that it is.

python3 -m tools.setup                 set up when missing or out of date
python3 -m tools.setup --force         go through every step (make setup)
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
    parser.add_argument("--force", action="store_true", help="go through every step")
    parser.add_argument("--python", help="the Python to make .venv from")
    parser.add_argument("--horovod-here", action="store_true", help="for conda: Horovod only")
    return parser.parse_args()


def set_up(python: str | None) -> None:
    """Make .venv complete. What is there and fits is kept."""
    from tools.setup import environment, horovod, interpreter, shell, state

    start = time.monotonic()
    shell.say(f"Setting up in {state.VENV}")
    state.STAMP.unlink(missing_ok=True)
    environment.make_venv(interpreter.find_python(python))
    environment.install_uv()
    settings = environment.uv_environment()
    environment.install_locked(settings)
    horovod.install_horovod(state.VENV, environment.UV_INSTALL, settings)
    state.write_json(state.STAMP, {"key": state.key()})
    state.UNFINISHED.unlink(missing_ok=True)
    shell.say(f"Set up in {time.monotonic() - start:.0f} s.")


def horovod_here() -> None:
    """Build or fetch Horovod for the environment whose Python runs this."""
    from tools.setup import environment, horovod, state

    prefix = Path(sys.prefix)
    if prefix == Path(sys.base_prefix) and not (prefix / "conda-meta").exists():
        sys.exit("Activate the environment first: this Python belongs to the system.")
    uv = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    horovod.install_horovod(prefix, uv, environment.clean_environment())
    sys.exit(0 if state.horovod_state(prefix) == "installed" else 1)


def main() -> None:
    if sys.platform == "win32":
        sys.exit("Windows: run this kit inside WSL 2, where it is a Linux machine.")
    from tools.setup import state

    asked = options()
    if not (asked.force or asked.python or asked.horovod_here) and state.up_to_date():
        return
    from tools.setup.shell import SetupError

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        if asked.horovod_here:
            horovod_here()
        with state.one_at_a_time():
            if asked.force or asked.python or not state.up_to_date():
                set_up(asked.python)
    except SetupError as error:
        sys.exit(f"\nThe set-up stopped.\n{error}")
    except KeyboardInterrupt:
        print("\nInterrupted. The same command finishes the set-up; downloads are kept.")
        sys.exit(130)


if __name__ == "__main__":
    main()
