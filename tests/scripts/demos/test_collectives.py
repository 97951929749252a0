"""Our all-reduces give what torch's gives, and pass what they promise; so do DDP's hooks."""

import itertools
from collections import Counter

import collectives_on_ranks as on_ranks
import hooks_on_ranks
import numpy as np
import pytest

from workshop.launch.ranks import start_ranks
from workshop.measure import all_reduces

RANKS = 6
EVERY = tuple(range(RANKS))
BY_RANK = ("naive", "tree", "ring")  # they look at ranks alone
PLACED = ("hierarchical", "mini_herring", "interleaved_ring")
KINDS = ("int64", "float32", "int32", "float64", "float16")
GROUPS = [EVERY[:n] for n in range(1, RANKS + 1)] + [(1, 3, 4), (3, 4, 5), (2, 5)]


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(RANKS) as started:
        yield started


def possible(algorithm, members, per_instance):
    """Whether two tiers find equally many ranks on each instance; the others need not."""
    counts = Counter(member // per_instance for member in members).values()
    return algorithm != "hierarchical" or len(set(counts)) == 1


def check(results):
    """Torch's result on every rank that took part, to the last bit; how many took part."""
    took_part = [result for result in results if result is not None]
    for ours, theirs in took_part:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes()
    return len(took_part)


@pytest.mark.parametrize("algorithm", (*BY_RANK, *PLACED))
def test_equal_to_torchs_in_every_group_and_of_every_length_and_type(ranks, algorithm):
    cases = [
        (algorithm, members, per_instance, shape, KINDS[at % len(KINDS)], True)
        for members in GROUPS
        for per_instance in ((1, 2, 3) if algorithm in PLACED else (1,))
        if possible(algorithm, members, per_instance)
        for at, shape in enumerate(
            [(0,), (1,), (len(members) - 1,), (len(members) + 1,), (1001,), (3, 1, 7)],
            start=len(members) + per_instance,
        )
    ]
    by_rank = ranks.run(on_ranks.compare, cases)
    for number, case in enumerate(cases):
        assert check([results[number] for results in by_rank]) == len(case[1]), case


@pytest.mark.parametrize("algorithm", (*BY_RANK, *PLACED))
def test_fractions_are_close_and_the_same_on_every_rank(ranks, algorithm):
    # A sum of 6 numbers below 1, in another order: a few of the last bits differ.
    tolerances = {"float32": 2e-6, "float64": 4e-15, "float16": 2e-2}
    cases = [
        (algorithm, EVERY, per_instance, (1001,), kind, False)
        for per_instance in ((1, 2, 3, 6) if algorithm in PLACED else (1,))
        for kind in tolerances
    ]
    by_rank = ranks.run(on_ranks.compare, cases)
    for number, (*_, kind, _) in enumerate(cases):
        first = by_rank[0][number][0]
        for ours, theirs in (results[number] for results in by_rank):
            assert np.abs(ours.astype("f8") - theirs.astype("f8")).max() <= tolerances[kind]
            assert ours.tobytes() == first.tobytes()


@pytest.mark.parametrize(("length", "chunk_bytes"), [(7, 8), (101, 8), (1001, 4000)])
def test_hierarchical_in_chunks_of_any_size(ranks, length, chunk_bytes):
    for per_instance in (1, 2, 3, 6):
        results = ranks.run(on_ranks.compare_in_chunks, length, chunk_bytes, per_instance)
        assert check(results) == RANKS


def test_a_chunk_crosses_while_the_next_is_added_up_inside(ranks):
    for spans in ranks.run(on_ranks.tiers_at_once):
        intra_node, inter_node = spans["reduce_scatter"], spans["all_reduce"]
        assert len(intra_node) == len(inter_node) == 4
        assert intra_node[1][0] < inter_node[0][1], "the second chunk waited for the first to cross"
        assert inter_node[0][0] >= intra_node[0][1], "it crossed before its instance had its sum"


@pytest.mark.parametrize("algorithm", (*BY_RANK, *PLACED))
def test_the_bytes_are_those_of_the_cost_model(ranks, algorithm):
    n_bytes = 4 * 720  # 720 numbers: they divide evenly among 1 to 6 ranks, and their parts too
    for size, per_instance in [(1, 1), (2, 1), (3, 1), (4, 1), (4, 2), (4, 4), (5, 1), (6, 3)]:
        results = ranks.run(on_ranks.traffic, algorithm, n_bytes, size, per_instance)
        place = {"instances": size // per_instance, "ranks_per_instance": per_instance}
        passed = [
            (traffic["sent_bytes"], traffic["received_bytes"]) for traffic in results if traffic
        ]
        expected = [[0.0, 0.0] for _ in range(size)]
        for message in itertools.chain.from_iterable(
            all_reduces.steps(algorithm, n_bytes, **place)
        ):
            expected[message.source][0] += message.n_bytes
            expected[message.to][1] += message.n_bytes
        assert [list(pair) for pair in passed] == expected, place
        if algorithm in BY_RANK:
            messages = sum(len(step) for step in all_reduces.steps(algorithm, n_bytes, **place))
            assert sum(traffic["messages_sent"] for traffic in results if traffic) == messages
            assert sum(traffic["messages_received"] for traffic in results if traffic) == messages


@pytest.mark.parametrize("per_instance", (1, 2, 3, 6))
def test_bytes_over_each_instances_link(ranks, per_instance):
    n_bytes, instances = 64 * 840, RANKS // per_instance
    least = 2 * (instances - 1) * n_bytes // instances
    ring = 2 * (RANKS - 1) * n_bytes // RANKS
    crossing = {
        "hierarchical": least,
        "mini_herring": least,
        "ring": ring if instances > 1 else 0,
        "interleaved_ring": ring * per_instance if instances > 1 else 0,
    }
    for algorithm, expected in crossing.items():
        sent = ranks.run(on_ranks.bytes_across, algorithm, n_bytes, per_instance)
        of_each = [sum(sent[at : at + per_instance]) for at in range(0, RANKS, per_instance)]
        assert of_each == [expected] * instances, algorithm


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"LOCAL_WORLD_SIZE": "4"}, "The instances have 4, 2 ranks"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "5"}, "The instances have 5, 1 ranks"),
    ],
)
def test_unequal_instances_are_refused(ranks, variables, message):
    assert all(
        error.startswith(message)
        for error in ranks.run(on_ranks.refused, "hierarchical", variables)
    )


def test_herring_takes_unequal_instances(ranks):
    assert ranks.run(on_ranks.refused, "mini_herring", {"LOCAL_WORLD_SIZE": "4"}) == [None] * RANKS


@pytest.mark.parametrize("algorithm", BY_RANK)
def test_a_tensor_with_gaps_is_refused(ranks, algorithm):
    errors = ranks.run(on_ranks.refused, algorithm, {}, True)
    assert errors == ["The tensor is not contiguous in memory: pass tensor.contiguous()."] * RANKS


def test_messages_are_timed_by_block_and_all_ranks_know_the_slowest(ranks):
    results = ranks.run(on_ranks.seconds, RANKS // 2, [8, 4000])
    both = ("intra_node", "inter_node")
    pairs = sorted({1, RANKS // 2})
    assert set(results[0]) == set(itertools.product(both, pairs, [8, 4000]))
    assert all(len(blocks) == 3 and min(blocks) > 0 for blocks in results[0].values())
    assert results == [results[0]] * RANKS


def test_a_tier_without_messages_has_no_seconds(ranks):
    assert {key[0] for key in ranks.run(on_ranks.seconds, RANKS, [8])[0]} == {"intra_node"}
    assert {key[0] for key in ranks.run(on_ranks.seconds, 1, [8])[0]} == {"inter_node"}


# DDP's communication hooks, on the same ranks


@pytest.fixture(scope="module")
def default(ranks):
    """Gradients of three steps with DDP's own all-reduce."""
    return gradients(ranks)


def gradients(ranks, per_instance=2, **settings):
    """Those of three steps, which every rank must have alike."""
    by_rank = ranks.run(hooks_on_ranks.gradients, settings, 3, per_instance)
    for other in by_rank[1:]:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(by_rank[0], other, strict=True))
    return by_rank[0]


def off(results, default):
    """The largest difference of any step, as a part of that step's largest gradient."""
    steps = zip(results, default, strict=True)
    return [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in steps]


@pytest.mark.parametrize(("per_instance", "megabytes"), [(1, 25), (3, 25), (2, 0.01)])
def test_the_hierarchical_hook_is_the_default_but_for_rounding(
    ranks, default, per_instance, megabytes
):
    settings = {"all_reduce": "hierarchical", "bucket_megabytes": megabytes}
    assert max(off(gradients(ranks, per_instance, **settings), default)) < 1e-5


def test_sixteen_bits_are_close(ranks, default):
    assert 1e-6 < max(off(gradients(ranks, all_reduce="fp16"), default)) < 1e-2


def test_powersgd_is_exact_before_its_start_and_near_after(ranks, default):
    results = gradients(ranks, all_reduce="powersgd", powersgd_start=2, powersgd_rank=4)
    exact, also_exact, compressed = off(results, default)
    assert max(exact, also_exact) < 1e-5
    assert 1e-3 < compressed < 1.0
    # It keeps what matters most: the direction downhill.
    a, b = results[2], default[2]
    assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.5


def test_a_failing_all_reduce_ends_backward_with_its_reason(ranks):
    errors = ranks.run(hooks_on_ranks.refused, {"all_reduce": "hierarchical"}, 4, timeout=30)
    assert all("The instances have 4, 2 ranks" in error for error in errors)


def test_hierarchical_needs_gloo(monkeypatch):
    import argparse

    import torch.distributed as dist
    from common.errors import ScriptError
    from common.hooks_torch import register

    monkeypatch.setattr(dist, "get_backend", lambda: "nccl")
    model = argparse.Namespace(process_group=None)
    with pytest.raises(ScriptError, match="here the backend is nccl"):
        register(model, "hierarchical")
