"""Records that an earlier process of the emulator left, as far as they can be read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

LOG = logging.getLogger(__name__)
T = TypeVar("T")


def readable(paths: Iterable[Path], read: Callable[[Path], T], what: str) -> Iterator[T]:
    """What `read` makes of each file, in their names' order. A damaged one is logged, left out.

    read: raises OSError, ValueError, KeyError or TypeError for a file that is not a record.
    what: "a job's record", for the log.
    """
    for path in sorted(paths):
        try:
            found = read(path)
        except (OSError, ValueError, KeyError, TypeError) as error:
            LOG.error("%s is not %s (%s): it is left out", path, what, error)
        else:
            yield found
