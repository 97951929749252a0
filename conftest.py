"""What all tests need of the process that runs them."""

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from local_sagemaker.cluster import probe
from local_sagemaker.cluster.spec import NAMESPACES

# jsonschema tries to import this, and no test checks IRIs: it compiles a grammar for 1.5 s.
sys.modules.setdefault("rfc3987_syntax", None)

# `make test` gives its workers one file after the other: a long one must not be the last.
LONGEST_FIRST = (
    *(f"test_lesson_{n}.py" for n in ("05", "07", "10", "04", "06", "09", "08", "03", "02", "01")),
    *("test_exercises.py", "test_train_tf.py", "test_isolation.py", "test_launchers.py"),
    *("test_lessons_notice.py", "test_jupyterlab.py", "test_kills_torch.py"),
)


def pytest_configure() -> None:
    """Let Ctrl-C reach what the tests start.

    A shell starts background commands with SIGINT ignored, and children inherit that: the
    tests of interrupts would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the endpoints of this run that an interrupt has left, of its workers too."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    folder = config._tmp_path_factory.getbasetemp()  # the fixture tmp_path_factory is this
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if "local_sagemaker" in words and any(word.startswith(f"{folder}/") for word in words):
                process.terminate()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, and last what only reads the results of others."""

    def place(item: pytest.Item) -> int:
        name = item.path.name
        if name == "test_every_lesson.py":
            return len(LONGEST_FIRST) + 1
        return LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST)

    items.sort(key=place)


@pytest.fixture(scope="session")
def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


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


@pytest.fixture(autouse=True)
def no_session_of_another_endpoint() -> None:
    """boto3's default session remembers the keys of the endpoint that it first met."""
    if boto3 := sys.modules.get("boto3"):
        boto3.DEFAULT_SESSION = None


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
    if boto3 := sys.modules.get("boto3"):
        boto3.DEFAULT_SESSION = None  # it keeps the keys with which it was made


def _aws_variables() -> dict[str, str]:
    ours = ("AWS_", "SAGEMAKER_")
    return {name: value for name, value in os.environ.items() if name.startswith(ours)}
