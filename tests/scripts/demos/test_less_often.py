"""Ways to train in which ranks send less: each is DDP where it has nothing to leave out."""

import sys

import less_often_on_ranks
import measure_less_often
import numpy as np
import pytest

from workshop.launch.ranks import start_ranks

ROUNDING = 1e-6
SGD = {"lr": 0.1}


@pytest.fixture(scope="module")
def trained():
    """A function: train on two ranks, as less_often_on_ranks says; the weights of both."""
    with start_ranks(2) as ranks:

        def train(name, settings, sizes=(2, 2, 2, 2), optimizer=SGD):
            run = less_often_on_ranks.weights_after
            first, second = ranks.run(run, name, settings, list(sizes), optimizer)
            assert np.array_equal(first, second), "the ranks hold two models"
            return first

        yield train


@pytest.mark.parametrize(
    ("name", "settings", "optimizer"),
    [
        ("accumulate", {"every": 1}, SGD),
        ("local_sgd", {"every": 1}, SGD | {"momentum": 0.9}),
        ("top_k", {"share": 1}, SGD),
    ],
)
def test_with_nothing_left_out_it_is_ddp(trained, name, settings, optimizer):
    expected = trained("ddp", {}, optimizer=optimizer)
    assert np.abs(trained(name, settings, optimizer=optimizer) - expected).max() < ROUNDING


def test_accumulation_is_one_large_batch(trained):
    expected = trained("ddp", {}, sizes=(8,))
    assert np.abs(trained("accumulate", {"every": 4}) - expected).max() < ROUNDING
    assert np.abs(trained("ddp", {}) - expected).max() > 1000 * ROUNDING


def test_diloco_in_every_step_is_sgd_with_nesterovs_momentum(trained):
    outer = {"lr": 0.7 * 0.1, "momentum": 0.9, "nesterov": True}
    expected = trained("ddp", {}, optimizer=outer)
    assert np.abs(trained("diloco", {"every": 1}) - expected).max() < ROUNDING


def test_local_steps_differ_from_ddp_and_end_in_one_model(trained):
    far = {"lr": 2}
    expected = trained("ddp", {}, optimizer=far)
    for name in ("local_sgd", "diloco"):
        apart = np.abs(trained(name, {"every": 2}, optimizer=far) - expected).max()
        assert apart > 100 * ROUNDING, name


def test_what_top_k_leaves_out_comes_later(trained):
    """Without memory the small numbers of a gradient never reach their weights."""
    first = trained("ddp", {}, optimizer={"lr": 0})
    sizes = [1] * 12
    settings = ({"share": 0.1}, {"share": 0.1, "memory": False})
    moved = [np.count_nonzero(trained("top_k", s, sizes) != first) for s in settings]
    assert moved[0] > 1.2 * moved[1]


def test_an_unknown_way_is_said(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["measure_less_often.py", "--time", "DDP,shout"])
    with pytest.raises(SystemExit):
        measure_less_often.arguments()
    assert "no shout; there are DDP, fp16, PowerSGD" in capsys.readouterr().err
