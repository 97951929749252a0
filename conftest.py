"""What all tests need of the process that runs them."""

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import local_sagemaker

# Also where local-sagemaker was installed before it had this entry point.
pytest_plugins = ["local_sagemaker.pytest_plugin"]

# jsonschema tries to import this, and no test checks IRIs: it compiles a grammar for 1.5 s.
sys.modules.setdefault("rfc3987_syntax", None)
# Nor does any look for a machine image: moto makes 1,300 of them in each region.
os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

# A busy machine is no failure. (`make test-matrix` has the frameworks alone.)
with contextlib.suppress(ModuleNotFoundError):
    import hypothesis

    hypothesis.settings.register_profile("no deadline", deadline=None)
    hypothesis.settings.load_profile("no deadline")


def pytest_configure() -> None:
    """Let Ctrl-C reach what the tests start.

    A shell starts background commands with SIGINT ignored, and children inherit that: the
    tests of interrupts would wait for ever.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests first, and last those that only read what executed lessons left.

    `make test` gives its workers one file after the other: a long one must not be the last, and
    nobody should wait for a lesson that another worker executes.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    last = {item.path for item in items if item.get_closest_marker("reads_lessons")}

    def place(item: pytest.Item) -> int:
        return 2 if item.path in last else int(item.path not in slow)

    items.sort(key=place)


@pytest.fixture(scope="session")
def common_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of this test run share."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, with the reason, what this machine cannot do; before any fixture starts."""
    if item.get_closest_marker("namespaces") and (reason := namespaces_unavailable_reason()):
        pytest.skip(f"instances are plain processes here: {reason}")
    if item.get_closest_marker("shaping") and (reason := shaping_unavailable_reason()):
        pytest.skip(f"links cannot be shaped here: {reason}")


@functools.cache
def namespaces_unavailable_reason() -> str | None:
    """None where this machine can start instances as namespaces, else the reason. Tries it once."""
    kind, reason = local_sagemaker.isolation()
    return None if kind == "namespaces" else reason


@functools.cache
def shaping_unavailable_reason() -> str | None:
    """None where this machine can give links a rate, else the reason. Tries it once."""
    return namespaces_unavailable_reason() or local_sagemaker.shaping_unavailable_reason()


@pytest.fixture(scope="session", autouse=True)
def libraries_repeat_nothing() -> Iterator[None]:
    """What else takes minutes of all tests together.

    Each boto3 session reads the models of its services anew, megabytes of JSON. The SageMaker SDK
    checks the schema of its settings twenty times for an estimator.
    """
    try:
        from botocore.loaders import JSONFileLoader
        from jsonschema import Draft202012Validator
    except ModuleNotFoundError:  # `make test-matrix`: the frameworks alone
        yield
        return
    load, check = JSONFileLoader.load_file, Draft202012Validator.check_schema
    read = functools.cache(lambda path: load(JSONFileLoader(), path))
    checked: dict[int, dict] = {}

    def load_file(self: JSONFileLoader, path: str) -> Any:
        # botocore changes its model of S3, and moto wants it as it was.
        return load(self, path) if "s3" in Path(path).parts else read(path)

    def check_once(schema: dict, *rest: Any, **named: Any) -> None:
        if id(schema) not in checked:
            check(schema, *rest, **named)
            checked[id(schema)] = schema  # kept: else another may get its id

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JSONFileLoader, "load_file", load_file)
        patch.setattr(Draft202012Validator, "check_schema", staticmethod(check_once))
        yield


@contextlib.contextmanager
def nobodys_aws(nowhere: Path) -> Iterator[pytest.MonkeyPatch]:
    """No AWS variable, file or metadata service of this machine is seen. nowhere: no such file."""
    from workshop.jobs import local_server

    with pytest.MonkeyPatch.context() as patch:
        for name in _aws_variables():
            patch.delenv(name)
        patch.setenv("AWS_CONFIG_FILE", str(nowhere))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield patch
        local_server.point_back()
        os.environ.pop("SAGEMAKER_SUPPRESS_V2_WARNING", None)


@pytest.fixture
def clean_aws(tmp_path: Path) -> Iterator[None]:
    """`nobodys_aws`, for a test."""
    with nobodys_aws(tmp_path / "none"):
        yield


@pytest.fixture(scope="module")
def clean_aws_in_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """`nobodys_aws`, for all tests of a file."""
    with nobodys_aws(tmp_path_factory.mktemp("aws") / "none"):
        yield


@pytest.fixture(autouse=True)
def no_session_of_another_emulator() -> None:
    """boto3's default session remembers the keys of the emulator that it first met."""
    if boto3 := sys.modules.get("boto3"):
        boto3.DEFAULT_SESSION = None


@pytest.fixture(scope="module", autouse=True)
def aws_variables_as_before() -> Iterator[None]:
    """What a module's tests say about AWS ends with them.

    A session points the whole process at its emulator; tests of another folder use moto in
    this process, and would ask an emulator that is gone.
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
