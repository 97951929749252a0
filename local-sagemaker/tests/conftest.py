"""One emulator for these tests, and an unmodified SDK that talks to it."""

import functools

import pytest
from moto_life import life_in

from local_sagemaker import pytest_plugin


@pytest.fixture(scope="session")
def emulator(sagemaker_emulator):
    """The emulator, with a bucket that holds the channel s3://lessons-data/data/."""
    for number in range(4):
        sagemaker_emulator.put(f"data/part-{number}.txt", f"shard {number}")
    return sagemaker_emulator


@pytest.fixture
def api(emulator):
    """The emulator's SageMaker, as a boto3 client."""
    return emulator.client("sagemaker")


@pytest.fixture
def life(tmp_path):
    """Lives of an emulator's moto, one after another."""
    return functools.partial(life_in, tmp_path)


@pytest.fixture
def mortal(tmp_path):
    """An emulator of one test's own, which it may kill, with the tests' bucket."""
    with pytest_plugin.emulator(tmp_path / "state") as emulator:
        emulator.client("s3").create_bucket(Bucket=pytest_plugin.BUCKET)
        yield emulator


@pytest.fixture
def sdk(emulator, sagemaker_session):
    """A sagemaker Session that talks to this emulator."""
    return sagemaker_session
