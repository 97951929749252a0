"""Lesson 01's experiments: a sync server does what one process does, an async one does not."""

from itertools import pairwise

import numpy as np
import pytest

from workshop.launch.ranks import start_ranks

UPDATES, RATE = 12, 0.5


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(3) as started:
        yield started


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    pixels = random.random((60, 64), dtype=np.float32)
    return pixels, random.integers(10, size=60)


def parts_of(pixels, labels):
    return [None, *((pixels[worker::2], labels[worker::2]) for worker in range(2))]


def one_process(pixels, labels):
    """Softmax regression by gradient descent on all images, in numpy; the weights at the end.

    As a vector: those of the pixels, class by class, then the biases.
    """
    weights = np.zeros((65, 10))
    inputs = np.hstack([pixels, np.ones((len(pixels), 1))])
    for _ in range(UPDATES):
        scores = np.exp(inputs @ weights)
        wrong = scores / scores.sum(1, keepdims=True) - np.eye(10)[labels]
        weights -= RATE * inputs.T @ wrong / len(labels)
    return np.concatenate([weights[:-1].T.ravel(), weights[-1]])


def test_sync_updates_are_those_of_one_process(ranks, data):
    train = ("parallel.stale:train", parts_of(*data), True, UPDATES, RATE, [0, 0, 0.005])
    records, *others = ranks.run_each(*train)
    assert len(records) == UPDATES
    for computed, pause in zip(others, (0, 0.005), strict=True):
        assert len(computed) == UPDATES
        assert all(ended - began >= pause for began, ended in computed)
        assert all(a[1] <= b[0] for a, b in pairwise(computed))
    assert all(one["staleness"] == 0 and one["worker"] == 0 for one in records)
    assert np.allclose(records[-1]["weights"], one_process(*data), atol=1e-5)


def test_async_updates_come_from_one_worker_each_and_get_stale(ranks, data):
    train = ("parallel.stale:train", parts_of(*data), False, UPDATES, RATE, [0, 0.002, 0.04])
    records = ranks.run_each(*train)[0]
    assert len(records) == UPDATES
    assert {one["worker"] for one in records} <= {1, 2}
    assert all(one["staleness"] >= 0 for one in records)
    by_worker = [sum(one["worker"] == worker for one in records) for worker in (1, 2)]
    assert by_worker[0] > by_worker[1], "the slow worker made more updates than the fast one"
    assert not np.allclose(records[-1]["weights"], one_process(*data), atol=1e-3)
    losses = ranks.run("parallel.stale:losses", records, *data)[0]
    assert losses[-1] < losses[0]


def test_the_server_ends_its_workers_and_can_start_again(ranks, data):
    for together in (False, True, False):
        train = ("parallel.stale:train", parts_of(*data), together, 3, RATE, [0, 0, 0])
        assert len(ranks.run_each(*train, timeout=30)[0]) == 3


def rates(setting, steps):
    from parallel.large_batch import rate_at

    return [rate_at(step, setting, steps_per_epoch=5) for step in steps]


def test_the_rate_rises_in_a_line_and_stays(ranks):
    setting = {"learning_rate": 0.16, "first_rate": 0.02, "warmup_epochs": 2}
    steps = [0, 5, 10, 11, 1000]
    found = ranks.run(rates, setting, steps)[0]
    assert found == pytest.approx([0.02, 0.09, 0.16, 0.16, 0.16])
    found = ranks.run(rates, setting | {"warmup_epochs": 0}, steps)[0]
    assert found == pytest.approx([0.16] * 5)
