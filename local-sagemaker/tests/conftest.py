"""One emulator for these tests, and an unmodified SDK that talks to it."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def emulator(sagemaker_emulator):
    """The emulator, with a bucket that holds the channel s3://lessons-data/data/."""
    for number in range(4):
        sagemaker_emulator.put(f"data/part-{number}.txt", f"shard {number}")
    return sagemaker_emulator


@pytest.fixture
def sdk(emulator, sagemaker_session):
    """A sagemaker Session that talks to this emulator."""
    return sagemaker_session
