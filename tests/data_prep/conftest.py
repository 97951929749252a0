from collections.abc import Callable, Iterator
from pathlib import Path

import data_prep_helpers as helpers
import pytest


@pytest.fixture
def server() -> Iterator[helpers.Server]:
    running = helpers.Server()
    yield running
    running.close()


@pytest.fixture
def tree() -> Callable[[Path], list[str]]:
    """List everything below a directory, hidden and temporary files too."""
    return lambda path: sorted(p.relative_to(path).as_posix() for p in path.rglob("*"))
