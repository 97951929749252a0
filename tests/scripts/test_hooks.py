"""Each communication hook averages gradients as DDP does, as exactly as it promises."""

import hooks_on_ranks as on_ranks
import numpy as np
import pytest

from workshop.launch.ranks import start_ranks

RANKS = 4


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(RANKS) as started:
        yield started


@pytest.fixture(scope="module")
def default(ranks):
    """Gradients of three steps with DDP's own all-reduce."""
    return same_on_all(ranks.run(on_ranks.gradients, [], 3, 2))


def same_on_all(by_rank):
    for other in by_rank[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(by_rank[0], other, strict=True))
    return by_rank[0]


def off(found, default):
    """The largest difference of any step, as a part of that step's largest gradient."""
    steps = zip(found, default, strict=True)
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in steps]


@pytest.mark.parametrize("per_instance", (1, 2, 4))
@pytest.mark.parametrize("megabytes", ("25", "0.01"))
def test_two_tier_is_the_default_but_for_rounding(ranks, default, per_instance, megabytes):
    flags = ["--all-reduce", "two_tier", "--bucket-megabytes", megabytes]
    found = same_on_all(ranks.run(on_ranks.gradients, flags, 3, per_instance))
    assert max(off(found, default)) < 1e-5


def test_small_buckets_are_several(ranks):
    seen = ranks.run(on_ranks.buckets_and_their_order, 2)
    assert seen == [seen[0]] * RANKS
    assert len(seen[0]) >= 4  # two steps: the first has one bucket, then DDP arranges them anew


def test_sixteen_bits_are_close(ranks, default):
    found = same_on_all(ranks.run(on_ranks.gradients, ["--all-reduce", "fp16"], 3, 2))
    assert 1e-6 < max(off(found, default)) < 1e-2


def test_powersgd_is_exact_before_its_start_and_near_after(ranks, default):
    flags = ["--all-reduce", "powersgd", "--powersgd-start", "2", "--powersgd-rank", "4"]
    found = same_on_all(ranks.run(on_ranks.gradients, flags, 3, 2))
    exact, also_exact, compressed = off(found, default)
    assert max(exact, also_exact) < 1e-5
    assert 1e-3 < compressed < 1.0
    # It keeps what matters most: the direction downhill.
    a, b = found[2], default[2]
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.5


def test_a_failing_all_reduce_ends_backward_with_its_reason(ranks):
    said = ranks.run(on_ranks.refused, ["--all-reduce", "two_tier"], 3, timeout=30)
    assert all("The instances have 3, 1 ranks" in one for one in said)


def test_two_tier_needs_gloo(monkeypatch):
    import argparse

    import torch.distributed as dist
    from common.errors import ScriptError
    from common.hooks_torch import register

    monkeypatch.setattr(dist, "get_backend", lambda: "nccl")
    model = argparse.Namespace(process_group=None)
    with pytest.raises(ScriptError, match="here the backend is nccl"):
        register(model, argparse.Namespace(all_reduce="two_tier"))
