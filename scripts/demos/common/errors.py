"""How a training script ends when its input is wrong: one plain line, exit status 1."""

import sys
from collections.abc import Callable


class ScriptError(Exception):
    """Something the person who starts the script can fix; the message says what and how."""


def run_main(main: Callable[[], None]) -> None:
    """Run `main`; print a ScriptError as one line on stderr and exit with status 1.

    Other exceptions keep their stack trace: they are faults of the script, not of its input.
    """
    try:
        main()
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
