from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import data_prep_helpers as helpers
import pytest

from data_prep.download import Policy


@pytest.fixture
def server() -> Iterator[helpers.Server]:
    running = helpers.Server()
    yield running
    running.close()


@pytest.fixture
def hasty() -> Policy:
    """The real policy, with waits that a test can afford."""
    return Policy(attempts=3, connect_timeout=1, read_timeout=0.3, pause=0.01)


@pytest.fixture
def tree() -> Callable[[Path], list[str]]:
    """List everything below a directory, hidden and temporary files too."""
    return lambda path: sorted(p.relative_to(path).as_posix() for p in path.rglob("*"))
