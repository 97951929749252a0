"""One endpoint for the tests of serving."""

import pytest
from hosting_helpers import Served

from local_sagemaker.pytest_plugin import BUCKET, Emulator, sdk_session


@pytest.fixture(scope="session")
def served(tmp_path_factory, request):
    """An emulator with a bucket."""
    emulator = Emulator(tmp_path_factory.mktemp("serving") / "state")
    request.addfinalizer(emulator.down)
    emulator.client("s3").create_bucket(Bucket=BUCKET)
    return Served(emulator)


@pytest.fixture
def mortal(mortal):
    """An emulator of one test's own, to be killed."""
    return Served(mortal)


@pytest.fixture
def sdk(served, monkeypatch):
    """A sagemaker Session that talks to this endpoint."""
    return sdk_session(served.emulator, monkeypatch)
