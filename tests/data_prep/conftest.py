from collections.abc import Iterator

import data_prep_helpers as helpers
import pytest


@pytest.fixture
def server() -> Iterator[helpers.Server]:
    running = helpers.Server()
    yield running
    running.close()
