"""One endpoint for these tests, and an unmodified SDK that talks to it."""

from __future__ import annotations

import pytest

from endpoint_harness import BUCKET, Endpoint, sdk_session


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory, request):
    """An endpoint with a bucket that holds the channel s3://lessons-data/data/."""
    one = Endpoint(tmp_path_factory.mktemp("state"))
    request.addfinalizer(one.down)
    one.client("s3").create_bucket(Bucket=BUCKET)
    for number in range(4):
        one.put(f"data/part-{number}.txt", f"shard {number}")
    return one


@pytest.fixture
def sdk(endpoint, monkeypatch):
    """A sagemaker Session that talks to this endpoint."""
    return sdk_session(endpoint, monkeypatch)
