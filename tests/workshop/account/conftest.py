"""Sessions of seats that nobody else uses, on the tests' endpoint."""

import itertools

import pytest
from seat_helpers import furnish

import workshop

SEATS = itertools.count(1)


@pytest.fixture
def session(sagemaker_emulator, clean_aws_in_module):
    """A session of a seat that has nothing."""
    return open_session()


@pytest.fixture(scope="module")
def furnished(sagemaker_emulator, clean_aws_in_module):
    """A session of a seat that has something of each kind. For those who only look."""
    fresh = open_session()
    furnish(fresh)
    return fresh


def open_session():
    return workshop.session("local", seat=f"s{next(SEATS)}")
