"""How a training script ends when its input is wrong: one plain line, exit status 1."""

import errno
import sys
from collections.abc import Callable


class ScriptError(Exception):
    """Something the person who starts the script can fix; the message says what and how."""


# What a disk says that takes no more.
PLACE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EFBIG)


def run_main(main: Callable[[], None]) -> None:
    """Run `main`; print a ScriptError as one line on stderr and exit with status 1.

    So does a place that cannot be written, a full disk for example. Other exceptions keep their
    stack trace: they are faults of the script, not of its input.
    """
    try:
        main()
    except ScriptError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        sys.exit(1)
    except OSError as error:
        if error.errno not in PLACE:
            raise
        where = f" {error.filename}" if error.filename else ""
        print(
            f"error: cannot write{where}: {error.strerror}. Free some space, or choose another "
            "place with --save-to",
            file=sys.stderr,
            flush=True,
        )
        sys.exit(1)
