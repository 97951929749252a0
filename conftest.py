"""What all tests need of the process that runs them."""

import os
import signal
from collections.abc import Iterator

import pytest


def pytest_configure() -> None:
    """Let Ctrl-C reach what the tests start.

    A shell starts background commands with SIGINT ignored, and children inherit that: the
    tests of interrupts would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module", autouse=True)
def aws_variables_as_before() -> Iterator[None]:
    """What a module's tests say about AWS ends with them.

    A session points the whole process at its endpoint; tests of another folder use moto in
    this process, and would ask an endpoint that is gone.
    """
    before = _aws_variables()
    yield
    for name in _aws_variables():
        del os.environ[name]
    os.environ.update(before)


def _aws_variables() -> dict[str, str]:
    ours = ("AWS_", "SAGEMAKER_")
    return {name: value for name, value in os.environ.items() if name.startswith(ours)}
