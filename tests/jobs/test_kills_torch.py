"""Ranks that are killed under torchrun and without a launcher: no job hangs, no work is lost."""

from __future__ import annotations

import random

import pytest
from kill_harness import (
    EVERY,
    Way,
    begin,
    digits_endpoint,
    hashes,
    host,
    kill_and_resume,
    kill_at,
    program,
    rank,
    train,
)

from endpoint_harness import BUCKET, sdk_session

FIRST, LAST = 25, 140  # steps to kill in: by then a checkpoint is there
SEED = 20261121  # of the steps in which somebody is killed
IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"
PYTORCH = {"kind": "pytorch", "image_uri": IMAGE}
ENABLED = PYTORCH | {"distribution": {"torch_distributed": {"enabled": True}}}
# Enough steps that no machine is through with them before the kill. One rank alone is faster.
SETTINGS = {"max-steps": 400}
MORE = {"max-steps": 900, "epochs": 60}
# The toolkit starts a rank for each GPU of the instance type; without GPUs, one.
TWO_EACH = ENABLED | {"environment": {"LOCAL_SAGEMAKER_GPUS": "2"}}
WAYS = {
    "torchrun": Way("train_torch_ddp.py", SETTINGS, TWO_EACH),
    "plain": Way("train_torch.py", MORE, PYTORCH | {"instance_count": 1}),
    "one each": Way("train_torch_ddp.py", SETTINGS, ENABLED),
}
RANKS = {"torchrun": 4, "plain": 1}
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory, request):
    one = digits_endpoint(tmp_path_factory.mktemp("kills"))
    request.addfinalizer(one.down)
    return one


@pytest.fixture
def session(endpoint, monkeypatch):
    return sdk_session(endpoint, monkeypatch)


@pytest.fixture(scope="module")
def whole():
    """The uninterrupted jobs, by way."""
    return {}


def uninterrupted(endpoint, session, whole: dict, name: str):
    if name not in whole:
        whole[name] = train(endpoint, session, WAYS[name])
        assert len(set(hashes(whole[name]).values())) == 1
        assert sorted(hashes(whole[name])) == list(range(RANKS[name]))
    return whole[name]


@pytest.mark.slow
def test_a_killed_instance_ends_the_job(endpoint, session):
    """In 30 s, with a reason, and what it has trained is in S3. Lesson 10 resumes from there."""
    kept = f"s3://{BUCKET}/killed"
    begun = begin(session, WAYS["one each"], kept)
    job, _, reached = kill_at(endpoint, begun, host("algo-2"), EVERY + 1)
    assert job.status == "Failed" and job.description["FailureReason"], job.description
    assert reached > EVERY and endpoint.aws().objects(kept, "us-east-1")


VICTIMS = {
    "torchrun": [rank(0), rank(1), rank(3), host("algo-2")],
    "plain": [program("train_torch.py"), host("algo-1")],
}


@pytest.mark.soak
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("way", VICTIMS)
def test_ten_kills(endpoint, session, whole, way, number):
    victims = VICTIMS[way]
    step = random.Random(f"{SEED} {way} {number}").randrange(FIRST, LAST)
    reference = uninterrupted(endpoint, session, whole, way)
    victim = victims[number % len(victims)]
    kill_and_resume(endpoint, session, WAYS[way], victim, step, reference)
