"""A local endpoint of these tests' own, and sessions of seats that nobody else uses."""

import itertools
import os

import pytest
from seat_helpers import furnish

from local_sagemaker import daemon
from workshop.jobs import local_server as workshop_endpoint

SEATS = itertools.count(1)


# Not longer than a module: a session points the whole process at the endpoint, and other
# folders' tests use moto in this process.
@pytest.fixture(scope="module")
def own_endpoint(tmp_path_factory):
    """An endpoint with its own state on a free port; no AWS setting of this machine is seen."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [one for one in os.environ if one.startswith(("AWS_", "SAGEMAKER_"))]:
            patch.delenv(name)
        nowhere = tmp_path_factory.mktemp("aws") / "none"
        patch.setenv("AWS_CONFIG_FILE", str(nowhere))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nowhere))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        state = tmp_path_factory.mktemp("state")
        patch.setenv("WORKSHOP_STATE_DIR", str(state))
        yield daemon.start(state, 0, ["--grace", "3"])
        daemon.stop(state)
        workshop_endpoint.point_back()
        os.environ.pop("SAGEMAKER_SUPPRESS_V2_WARNING", None)


@pytest.fixture
def session(own_endpoint):
    """A session of a seat that has nothing."""
    return open_session()


@pytest.fixture(scope="module")
def furnished(own_endpoint):
    """A session of a seat that has something of each kind. For those who only look."""
    found = open_session()
    furnish(found)
    return found


def open_session():
    import workshop

    return workshop.session("local", seat=f"s{next(SEATS)}")
