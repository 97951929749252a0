"""One endpoint for the tests of serving."""

from __future__ import annotations

from functools import partialmethod

import pytest
from serving_helpers import Served

from endpoint_harness import BUCKET, Endpoint


@pytest.fixture(scope="session")
def served(tmp_path_factory, request):
    """A local endpoint with a bucket."""
    one = Endpoint(tmp_path_factory.mktemp("serving") / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    return Served(one)


@pytest.fixture
def mortal(tmp_path, request):
    """A local endpoint of one test's own, to be killed."""
    one = Endpoint(tmp_path / "state")
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    return Served(one)


@pytest.fixture
def sdk(served, monkeypatch):
    """The variables of `workshop env` are set; a sagemaker Session is returned."""
    for name, value in served.endpoint.env.items():
        monkeypatch.setenv(name, value)
    import sagemaker

    # Its 30 seconds between two looks at an endpoint are for one that takes minutes.
    wait = sagemaker.Session.wait_for_endpoint
    monkeypatch.setattr(sagemaker.Session, "wait_for_endpoint", partialmethod(wait, poll=1))
    return sagemaker.Session(default_bucket=BUCKET)
