"""The algorithms that know instances give what torch's all-reduce gives, and spare the link."""

import numpy as np
import pytest
import tiers_on_ranks as on_ranks

from workshop.launch.ranks import RankFailed, start_ranks

RANKS = 8
ALGORITHMS = ("two_tier", "herring", "blind_ring")
KINDS = ("int64", "int32", "float32", "float64", "float16")


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(RANKS) as started:
        yield started


def check(held):
    """Torch's result on every rank that took part, to the last bit."""
    took_part = [one for one in held if one is not None]
    for ours, theirs in took_part:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        assert ours.tobytes() == theirs.tobytes()
    return len(took_part)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_equal_to_torchs_at_every_number_of_ranks_and_odd_lengths(ranks, algorithm):
    cases = [
        (algorithm, world_size, per_instance, length, kind)
        for world_size in range(1, RANKS + 1)
        for per_instance in (1, 2, 4)
        if world_size % per_instance == 0 or algorithm != "two_tier"
        for length in (0, 1, world_size - 1, world_size + 1, 1001)
        for kind in ("int64", "float32")
    ]
    by_rank = ranks.run(on_ranks.compare_all, cases)
    for number, case in enumerate(cases):
        assert check([found[number] for found in by_rank]) == case[1], case


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_type(ranks, algorithm, kind):
    by_rank = ranks.run(on_ranks.compare_all, [(algorithm, 8, 4, 1003, kind)])
    assert check([found[0] for found in by_rank]) == RANKS


@pytest.mark.parametrize("per_instance", (1, 2, 4, 8))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_fractions_are_close_and_the_same_on_every_rank(ranks, algorithm, per_instance):
    # A sum of 8 numbers below 1, in another order: a few of the last bits differ.
    for kind, tolerance in (("float32", 2e-6), ("float64", 4e-15), ("float16", 2e-2)):
        held = ranks.run(on_ranks.compare_fractions, algorithm, per_instance, 1001, kind)
        for ours, theirs in held:
            assert np.abs(ours.astype("f8") - theirs.astype("f8")).max() <= tolerance
            assert ours.tobytes() == held[0][0].tobytes()


@pytest.mark.parametrize("per_instance", (1, 2, 4, 8))
@pytest.mark.parametrize(("length", "chunk_bytes"), [(7, 8), (101, 8), (1000, 1000), (1001, 4000)])
def test_two_tiers_in_chunks_of_any_size(ranks, per_instance, length, chunk_bytes):
    assert check(ranks.run(on_ranks.compare_in_chunks, length, chunk_bytes, per_instance)) == 8


def test_a_chunk_crosses_while_the_next_is_added_up_inside(ranks):
    for spans in ranks.run(on_ranks.tiers_at_once):
        inside, across = spans["reduce_scatter"], spans["all_reduce"]
        assert len(inside) == len(across) == 4
        assert inside[1][0] < across[0][1], "the second chunk waited for the first to cross"
        assert across[0][0] >= inside[0][1], "it crossed before its instance had its sum"


@pytest.mark.parametrize("members", [(1, 2, 5, 6), (4, 5, 6, 7), (3, 7)])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_in_a_group_of_some_ranks(ranks, algorithm, members):
    found = ranks.run(on_ranks.compare_in_a_group, algorithm, members, 4)
    assert check(found) == len(members)


@pytest.mark.parametrize("number", range(8))
def test_a_two_tier_all_reduce_with_an_empty_message_is_caught(ranks, number):
    found = ranks.run(on_ranks.compare_with_an_empty_message, "two_tier", number, 4)
    with pytest.raises(AssertionError):
        check(found)


@pytest.mark.parametrize("number", range(2))
def test_herring_with_an_empty_message_is_caught(ranks, number):
    found = ranks.run(on_ranks.compare_with_an_empty_message, "herring", number, 4)
    with pytest.raises(AssertionError):
        check(found)


def across(ranks, algorithm, n_bytes, per_instance):
    """Bytes over the link of every instance."""
    sent = ranks.run("collectives.tiers:bytes_across", algorithm, n_bytes, per_instance)
    return [sum(sent[at : at + per_instance]) for at in range(0, RANKS, per_instance)]


@pytest.mark.parametrize("per_instance", (1, 2, 4, 8))
def test_bytes_over_each_instances_link(ranks, per_instance):
    n_bytes, instances = 64 * 840, RANKS // per_instance
    least = 2 * (instances - 1) * n_bytes // instances
    ring = 2 * (RANKS - 1) * n_bytes // RANKS
    every_hop = ring * per_instance if instances > 1 else 0
    assert across(ranks, "two_tier", n_bytes, per_instance) == [least] * instances
    assert across(ranks, "herring", n_bytes, per_instance) == [least] * instances
    assert across(ranks, "ring", n_bytes, per_instance) == [ring * (instances > 1)] * instances
    assert across(ranks, "blind_ring", n_bytes, per_instance) == [every_hop] * instances


def test_places(ranks):
    instances, hops = ranks.run(on_ranks.places, 4)[0]
    assert instances == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert hops == [0, 4, 1, 5, 2, 6, 3, 7]
    instances, hops = ranks.run(on_ranks.places, 3)[0]
    assert instances == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert hops == [0, 3, 6, 1, 4, 7, 2, 5]


def test_unequal_instances_are_refused_by_two_tier_alone(ranks):
    said = ranks.run(on_ranks.refused, "two_tier", {"LOCAL_WORLD_SIZE": "3"})
    assert all("The instances have 3, 3, 2 ranks" in one for one in said)
    assert ranks.run(on_ranks.refused, "herring", {"LOCAL_WORLD_SIZE": "3"}) == [None] * RANKS


def test_open_mpis_variable_counts_too_and_nonsense_is_refused(ranks):
    said = ranks.run(on_ranks.refused, "two_tier", {"OMPI_COMM_WORLD_LOCAL_SIZE": "5"})
    assert all("The instances have 5, 3 ranks" in one for one in said)
    said = ranks.run(on_ranks.refused, "two_tier", {"LOCAL_WORLD_SIZE": "many"})
    assert said == ["LOCAL_WORLD_SIZE is 'many'; a positive number of ranks was expected."] * RANKS


@pytest.mark.parametrize("tier", ("inside", "across"))
@pytest.mark.parametrize("pairs", (1, 4))
def test_messages_are_timed_by_block_and_all_ranks_know_the_slowest(ranks, tier, pairs):
    found = ranks.run(on_ranks.seconds, tier, pairs, 4)
    assert len(found[0]) == 3 and min(found[0]) > 0
    assert found == [found[0]] * RANKS


def test_a_tier_without_messages_has_no_seconds(ranks):
    assert ranks.run(on_ranks.seconds, "across", 8, 8) == [None] * RANKS
    assert ranks.run(on_ranks.seconds, "inside", 1, 1) == [None] * RANKS


def test_pairs_that_nobody_can_form_are_refused(ranks):
    with pytest.raises(RankFailed, match="3 pairs: 1 or 4, the ranks of an instance"):
        ranks.run(on_ranks.seconds, "across", 3, 4)
