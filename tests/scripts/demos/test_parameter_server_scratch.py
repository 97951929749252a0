"""The parameter server from scratch: what it trains, how stale, how many bytes.

And the learning rates of lesson 01. All run on the same five ranks.
"""

import sys
from collections import Counter

import pytest
from script_harness import DEMOS, TEN_STEPS, largest_difference

from workshop.launch.ranks import start_ranks

# As for DDP: float32 sums in another order. A server that doesn't wait differs by 1e-3 and more.
TOLERANCE = 3e-7


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(5) as started:
        yield started


@pytest.fixture
def serve(ranks, digits):
    """Train with the words of a command line; what the server saw."""

    def serve(*words, function="parameter_server:train_with"):
        data = ["--training", str(digits / "training"), "--test", str(digits / "test")]
        return ranks.run(function, *data, *words, timeout=120)[0]

    return serve


def check_staleness(pushes: list) -> None:
    """A gradient is as stale as there were pushes of others since the worker's last one."""
    last: dict[int, int] = {}
    for number, (worker, staleness, *_) in enumerate(pushes):
        assert staleness == number - last.get(worker, -1) - 1, number
        last[worker] = number


def check_bytes(served: dict, parameters: int, workers: int, steps: int) -> None:
    """One message a pull and one a push, float32, with one value more than the weights."""
    message, gradients = 4 * (parameters + 1), workers * steps
    assert served["bytes_in"] == message * gradients
    assert served["bytes_out"] == message * (gradients + workers)  # the last one says: no more


@pytest.mark.parametrize("workers", [1, 4])
def test_a_server_that_waits_trains_what_one_process_trains(serve, ten_steps, workers):
    served = serve(*TEN_STEPS, "--workers", str(workers))
    assert largest_difference(ten_steps, served["weights"]) <= TOLERANCE
    assert {staleness for _, staleness, *_ in served["pushes"]} == {0}
    pushes = Counter(worker for worker, *_ in served["pushes"])
    assert pushes == dict.fromkeys(range(1, workers + 1), 10)
    check_bytes(served, sum(w.size for w in ten_steps), workers, 10)


def train_without_waiting(*words):
    """The sync mode of a server that applies each gradient as it comes."""
    import parameter_server

    waits, parameter_server.serve_sync = parameter_server.serve_sync, parameter_server.serve_async
    try:
        return parameter_server.train_with(*words)
    finally:
        parameter_server.serve_sync = waits


def test_the_comparison_finds_a_server_that_does_not_wait(serve, ten_steps):
    served = serve(*TEN_STEPS, "--workers", "2", function=train_without_waiting)
    assert largest_difference(ten_steps, served["weights"]) > 1000 * TOLERANCE
    assert any(staleness for _, staleness, *_ in served["pushes"])


def test_async_goes_on_without_the_slow_worker(serve):
    options = ["--mode", "async", "--workers", "3", "--slow-ms", "50", "--epochs", "10"]
    served = serve(*options, "--global-batch-size", "63")  # one rank more than needed
    pushes = served["pushes"]
    assert len(pushes) == 3 * 220
    check_staleness(pushes)
    share = Counter(worker for worker, *_ in pushes)
    assert set(share) == {1, 2, 3}
    assert share[3] < min(share[1], share[2]) / 2
    mean = {w: sum(s for worker, s, *_ in pushes if worker == w) / share[w] for w in share}
    assert mean[3] > 2 * max(mean[1], mean[2])
    check_bytes(served, 13_706, 3, 220)
    assert served["accuracy"] >= 0.85
    losses = [loss for *_, loss, _ in pushes]
    assert sum(losses[-22:]) < sum(losses[:22]) / 2


def test_says_how_many_ranks_it_needs(run):
    done = run(sys.executable, DEMOS / "parameter_server.py", check=False)
    assert done.code == 1
    assert "start more ranks" in done.stderr.splitlines()[-1]


def rates(setting, steps):
    from parallel.large_batch import rate_at

    return [rate_at(step, setting, steps_per_epoch=5) for step in steps]


def test_the_rate_rises_in_a_line_and_stays(ranks):
    setting = {"learning_rate": 0.16, "first_rate": 0.02, "warmup_epochs": 2}
    steps = [0, 5, 10, 11, 1000]
    actual = ranks.run(rates, setting, steps)[0]
    assert actual == pytest.approx([0.02, 0.09, 0.16, 0.16, 0.16])
    actual = ranks.run(rates, setting | {"warmup_epochs": 0}, steps)[0]
    assert actual == pytest.approx([0.16] * 5)
