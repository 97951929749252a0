"""Our all-reduces give what torch's gives: any length, type, number of ranks, group."""

import collectives_on_ranks as on_ranks
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from workshop.launch.ranks import start_ranks
from workshop.measure import all_reduces

RANKS = 5
ALGORITHMS = tuple(all_reduces.ALGORITHMS)
# A sum of at most five numbers below 1000, in another order: a few of the last bits differ.
TOLERANCE = {"float32": 2e-3, "float64": 2e-12, "int64": 0}


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(RANKS) as started:
        yield started


def check(found, kind):
    """Right on every rank, and the same bits on every rank."""
    held = [one for one in found if one is not None]
    for ours, theirs in held:
        assert ours.dtype == kind and ours.shape == theirs.shape
        assert np.abs(ours - theirs).max(initial=0) <= TOLERANCE[kind]
        assert ours.tobytes() == held[0][0].tobytes()


members = st.sets(st.integers(0, RANKS - 1), min_size=1).map(lambda found: tuple(sorted(found)))


@settings(max_examples=60, deadline=None)
@given(
    algorithm=st.sampled_from(ALGORITHMS),
    members=st.none() | members,
    length=st.integers(0, 12) | st.integers(13, 3000),
    kind=st.sampled_from(sorted(TOLERANCE)),
    seed=st.integers(0, 99),
)
@example(algorithm="ring", members=None, length=3, kind="int64", seed=0)
@example(algorithm="tree", members=(0, 1, 2), length=1, kind="float32", seed=0)
@example(algorithm="ring", members=(1, 3, 4), length=100_003, kind="float64", seed=0)
def test_equal_to_torchs_all_reduce(ranks, algorithm, members, length, kind, seed):
    check(ranks.run(on_ranks.compare, algorithm, members, (length,), kind, seed), kind)


@pytest.mark.parametrize("world_size", range(1, RANKS + 1))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_number_of_ranks_and_odd_lengths(ranks, algorithm, world_size):
    for length in (1, world_size - 1, world_size + 1, 1001):
        for kind in TOLERANCE:
            found = ranks.run(
                on_ranks.compare, algorithm, tuple(range(world_size)), (length,), kind, length
            )
            assert sum(one is not None for one in found) == world_size
            check(found, kind)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_tensors_of_more_dimensions_keep_their_shape(ranks, algorithm):
    check(ranks.run(on_ranks.compare, algorithm, None, (3, 1, 7), "float32", 0), "float32")


@pytest.mark.parametrize("number", range(2 * (RANKS - 1)))
def test_a_ring_with_an_empty_message_is_caught(ranks, number):
    found = ranks.run(on_ranks.compare_with_an_empty_message, number, (11,), "int64", 0)
    with pytest.raises(AssertionError):
        check(found, "int64")


def test_after_the_reduce_scatter_rank_r_holds_chunk_r(ranks):
    for length in (3, 5, 12):
        for ours, theirs in ranks.run(on_ranks.reduce_scattered, length):
            assert ours.tolist() == theirs.tolist()


def test_a_ring_has_two_steps_for_each_rank_but_one(ranks):
    assert ranks.run(on_ranks.steps_of_ring, None) == [2 * (RANKS - 1)] * RANKS
    assert ranks.run(on_ranks.steps_of_ring, (2,)) == [0] * RANKS


@pytest.mark.parametrize("world_size", range(1, RANKS + 1))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_bytes_are_those_of_the_cost_model(ranks, algorithm, world_size):
    n_bytes = 4 * 60  # 60 numbers: they divide evenly among 1 to 5 ranks
    found = ranks.run("collectives.timing:count_traffic", algorithm, n_bytes, world_size)
    passed = [(one["sent_bytes"], one["received_bytes"]) for one in found if one]
    assert passed == all_reduces.bytes_by_rank(algorithm, n_bytes, world_size)
    messages = sum(len(one) for one in all_reduces.rounds(algorithm, n_bytes, world_size))
    assert sum(one["messages_sent"] for one in found if one) == messages
    assert sum(one["messages_received"] for one in found if one) == messages


def test_seconds_come_by_block(ranks):
    names = ["one way", "all at once", *ALGORITHMS, "gloo"]
    for rank, one in enumerate(
        ranks.run("collectives.timing:interleaved_seconds", names, 4000, 3, 2)
    ):
        assert list(one) == names and {len(found) for found in one.values()} == {2}
        timed = {name for name, found in one.items() if min(found) > 0}
        assert timed >= set(names[1:]) and (rank > 1 or "one way" in timed)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_tensor_with_gaps_is_refused(ranks, algorithm):
    said = ranks.run(on_ranks.sum_with_gaps, algorithm)
    assert said == ["The tensor is not contiguous in memory: pass tensor.contiguous()."] * RANKS
