"""What all tests need of the process that runs them."""

import functools
import os
import signal
from collections.abc import Iterator

import pytest

from local_sagemaker.cluster import probe
from local_sagemaker.cluster.spec import NAMESPACES


def pytest_configure() -> None:
    """Let Ctrl-C reach what the tests start.

    A shell starts background commands with SIGINT ignored, and children inherit that: the
    tests of interrupts would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine cannot do; before any fixture starts."""
    if item.get_closest_marker("namespaces") and (why := why_no_namespaces()):
        pytest.skip(f"instances are plain processes here: {why}")
    if item.get_closest_marker("shaping") and (why := why_no_shaping()):
        pytest.skip(f"links cannot be shaped here: {why}")


@functools.cache
def why_no_namespaces() -> str | None:
    """None where this machine can start instances as namespaces, else the reason. Tries it once."""
    kind, reason = probe.isolation()
    return None if kind == NAMESPACES else reason


@functools.cache
def why_no_shaping() -> str | None:
    """None where this machine can give links a rate, else the reason. Tries it once."""
    return why_no_namespaces() or probe.why_no_shaping()


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
