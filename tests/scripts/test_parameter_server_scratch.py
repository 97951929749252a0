"""The parameter server from scratch: what it trains, how stale, how many bytes."""

import sys
from collections import Counter

import pytest
from script_harness import (
    DEMOS,
    HERE,
    TEN_STEPS,
    largest_difference,
    torchrun,
    weights,
)

SERVER = DEMOS / "parameter_server.py"
# As for DDP: float32 sums in another order. A server that doesn't wait differs by 1e-3 and more.
TOLERANCE = 3e-7


def check_staleness(pushes: list[dict]) -> None:
    """A gradient is as stale as there were pushes of others since the worker's last one."""
    last: dict[int, int] = {}
    for number, push in enumerate(pushes):
        assert push["staleness"] == number - last.get(push["worker"], -1) - 1, number
        last[push["worker"]] = number


def check_bytes(served: dict, parameters: int, workers: int, steps: int) -> None:
    """One message a pull and one a push, float32, with one value more than the weights."""
    message, gradients = 4 * (parameters + 1), workers * steps
    assert served["bytes_in"] == message * gradients
    assert served["bytes_out"] == message * (gradients + workers)  # the last one says: no more


@pytest.mark.parametrize("workers", [1, 4])
def test_a_server_that_waits_trains_what_one_process_trains(run, ten_steps, tmp_path, workers):
    done = run(*torchrun(workers + 1), SERVER, *TEN_STEPS, "--dump-weights", tmp_path)
    assert largest_difference(ten_steps, weights(tmp_path)) <= TOLERANCE
    pushes = done.events("push")
    assert {push["staleness"] for push in pushes} == {0}
    assert Counter(push["worker"] for push in pushes) == dict.fromkeys(range(1, workers + 1), 10)
    check_bytes(done.events("served")[0], sum(w.size for w in ten_steps), workers, 10)


def test_the_comparison_finds_a_server_that_does_not_wait(run, ten_steps, tmp_path):
    done = run(*torchrun(3), HERE / "broken_server.py", *TEN_STEPS, "--dump-weights", tmp_path)
    assert largest_difference(ten_steps, weights(tmp_path)) > 1000 * TOLERANCE
    assert any(push["staleness"] for push in done.events("push"))


def test_async_goes_on_without_the_slow_worker(run, digits, tmp_path):
    options = ["--mode", "async", "--workers", "3", "--slow-ms", "50", "--epochs", "10"]
    options += ["--global-batch-size", "63"]
    done = run(*torchrun(5), SERVER, *options)  # one rank more than needed
    pushes, served = done.events("push"), done.events("served")[0]
    assert len(pushes) == 3 * 220
    check_staleness(pushes)
    share = Counter(push["worker"] for push in pushes)
    assert set(share) == {1, 2, 3}
    assert share[3] < min(share[1], share[2]) / 2
    mean = {w: sum(p["staleness"] for p in pushes if p["worker"] == w) / share[w] for w in share}
    assert mean[3] > 2 * max(mean[1], mean[2])
    check_bytes(served, 13_706, 3, 220)
    assert served["accuracy"] >= 0.85
    first, last = pushes[:22], pushes[-22:]
    assert sum(push["loss"] for push in last) < sum(push["loss"] for push in first) / 2


def test_the_check_of_staleness_finds_wrong_numbers():
    right = [(1, 0), (2, 1), (1, 1), (1, 0), (2, 2)]
    pushes = [{"worker": worker, "staleness": stale} for worker, stale in right]
    check_staleness(pushes)
    pushes[4]["staleness"] = 1
    with pytest.raises(AssertionError):
        check_staleness(pushes)


def test_says_how_many_ranks_it_needs(run):
    done = run(sys.executable, SERVER, check=False)
    assert done.code == 1
    assert "start more ranks" in done.stderr.splitlines()[-1]
