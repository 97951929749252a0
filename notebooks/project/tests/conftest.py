"""The seed of the tests' sizes, ranks and models; points and figures in the JUnit file."""

import random

import pytest
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="of sizes, ranks and models")
    parser.addoption("--key", help="the instructor's numbers of part 5")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if marker := item.get_closest_marker("points"):
            item.user_properties.append(("points", marker.args[0]))


@pytest.fixture(autouse=True)
def no_shortcuts(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self, *_, **__):
        raise RuntimeError(f"{type(self).__name__} is what you build here.")

    for shortcut in (DistributedDataParallel, ZeroRedundancyOptimizer):
        monkeypatch.setattr(shortcut, "__init__", refuse)


@pytest.fixture
def draw(request: pytest.FixtureRequest) -> random.Random:
    """The random numbers of one test."""
    return random.Random(f"{request.config.getoption('seed')} {request.node.name}")
