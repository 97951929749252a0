"""Ranks on instances: the messages of each algorithm, and what two tiers of links make of them."""

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workshop.measure import all_reduces, alpha_beta
from workshop.measure.all_reduces import Placement
from workshop.measure.alpha_beta import HierarchicalLinks, Link, SharedLinks, estimated_seconds

counts = st.integers(1, 6)
everywhere = st.sampled_from(list(all_reduces.ALGORITHMS))
INSIDE = SharedLinks(Link(10e-6, 1e-9), Link(20e-6, 3e-9), at_once=4, fewest=2)
NETWORK = Link(100e-6, 8 / 200e6)
TIERS = HierarchicalLinks(
    INSIDE, SharedLinks(NETWORK, Link(NETWORK.alpha, 2 * NETWORK.beta), at_once=2)
)


def out_of_instances(algorithm, instances, ranks_per_instance, n_bytes=1.0):
    passed = all_reduces.bytes_by_instance(algorithm, n_bytes, instances, ranks_per_instance)
    return max(max(pair) for pair in passed)


@given(instances=counts, ranks_per_instance=counts)
def test_bytes_over_an_instances_link_by_formula(instances, ranks_per_instance):
    assume(instances > 1)
    world_size = instances * ranks_per_instance
    flat, tiered = 2 * (world_size - 1) / world_size, 2 * (instances - 1) / instances
    expected = {"ring": flat, "interleaved_ring": ranks_per_instance * flat, "hierarchical": tiered}
    expected |= {"gloo": flat, "mini_herring": tiered}
    for algorithm, loads in expected.items():
        actual = out_of_instances(algorithm, instances, ranks_per_instance)
        assert actual == pytest.approx(loads), algorithm
        place = {"instances": instances, "ranks_per_instance": ranks_per_instance}
        seconds = alpha_beta.bound(algorithm, 1e6, bits_per_second=8e6, **place)
        assert seconds == pytest.approx(loads), algorithm


@given(algorithm=everywhere, instances=counts, ranks_per_instance=counts, seed=st.integers(0, 99))
def test_nobody_sends_or_receives_twice_in_a_round(algorithm, instances, ranks_per_instance, seed):
    messages_by_step = all_reduces.steps(algorithm, seed, ranks_per_instance, instances)
    for messages in messages_by_step:
        assert messages, "a round without a message"
        assert all(message.source != message.to for message in messages)
        assert len({message.source for message in messages}) == len(messages)
        assert len({message.to for message in messages}) == len(messages)


def test_gloos_ring_has_two_segments_of_at_most_a_mebibyte_on_their_way():
    # 24 MiB on 8 ranks: chunks of 3 segments, and 21 of them in a phase: 10 pairs and one alone.
    for n_bytes, pairs, single in [(24 * 2**20, 10, 1), (32 * 2**20, 14, 0), (8 * 2**20, 7, 0)]:
        messages_by_step = all_reduces.steps("gloo", n_bytes, 8)
        assert len(messages_by_step) == 2 * (pairs + single)
        sizes = [messages[0].n_bytes for messages in messages_by_step[: len(messages_by_step) // 2]]
        segment = min(2**20, n_bytes / 16)
        assert sizes == [2 * segment] * pairs + [segment] * single
        gloo, ring = (
            all_reduces.bytes_by_instance(name, n_bytes, 8, 1) for name in ("gloo", "ring")
        )
        assert gloo == ring
    assert all_reduces.steps("gloo", 0, 1) == [] and len(all_reduces.steps("gloo", 8, 3)) == 4


def test_all_messages_that_leave_an_instance_share_its_link():
    chunk = 8e6 / 8
    seconds = {
        name: estimated_seconds(name, 8e6, instances=2, ranks_per_instance=4, links=TIERS)
        for name in ("ring", "interleaved_ring", "hierarchical")
    }
    assert seconds["ring"] == pytest.approx(14 * NETWORK.seconds(chunk))
    assert seconds["interleaved_ring"] == pytest.approx(14 * NETWORK.seconds(4 * chunk))
    # 3 chunks: the network waits for the first chunk's sum, and the last one's copies for it.
    intra_node, network = 6 * INSIDE.busy.seconds(2e6 / 3), 2 * NETWORK.seconds(4 * chunk / 3)
    assert seconds["hierarchical"] == pytest.approx(intra_node + 3 * network)


@given(
    chunks=st.integers(1, 9),
    scatter=st.floats(0, 9),
    cross=st.floats(0, 9),
    gather=st.floats(0, 9),
)
def test_chunks_overlap_and_no_tier_does_two_things_at_once(chunks, scatter, cross, gather):
    seconds = alpha_beta.pipelined(chunks, scatter, cross, gather)
    busiest = chunks * max(scatter + gather, cross)
    one_chunk = scatter + cross + gather
    assert max(busiest, one_chunk) <= seconds + 1e-9 and seconds <= chunks * one_chunk + 1e-9
    assert alpha_beta.pipelined(1, scatter, cross, gather) == pytest.approx(one_chunk)
    # Two chunks: the second is added up while the first one crosses.
    assert alpha_beta.pipelined(2, 1, 3, 1) == 1 + 2 * 3 + 1
    assert alpha_beta.pipelined(2, 2, 1, 2) == 2 * (2 + 2)


def test_chunks_are_those_of_the_script():
    text = (Path(__file__).parents[3] / "scripts/demos/collectives/hierarchical.py").read_text()
    (written,) = re.findall(r"^CHUNK_BYTES = (.*?)  #", text, re.M)
    assert eval(written) == all_reduces.HIERARCHICAL_CHUNK_BYTES


def test_the_two_directions_of_a_link_do_not_hinder_each_other():
    place = Placement(2, 2)
    there, back = all_reduces.Message(0, 2, 100.0), all_reduces.Message(2, 0, 100.0)
    second = all_reduces.Message(1, 3, 100.0)
    assert TIERS.seconds([there, back], place) == TIERS.seconds([there], place)
    assert TIERS.seconds([there, second], place) > TIERS.seconds([there], place)


def test_many_senders_share_the_receivers_link():
    place, to_first = Placement(4, 1), [all_reduces.Message(n, 0, 1e6) for n in (1, 2, 3)]
    assert TIERS.seconds(to_first, place) == pytest.approx(NETWORK.seconds(3e6))


@given(algorithm=everywhere, instances=counts, ranks_per_instance=counts)
def test_no_prediction_is_below_the_bound(algorithm, instances, ranks_per_instance):
    place = {"instances": instances, "ranks_per_instance": ranks_per_instance}
    least = alpha_beta.bound(algorithm, 1e6, bits_per_second=200e6, **place)
    assert estimated_seconds(algorithm, 1e6, links=TIERS, **place) >= least * (1 - 1e-9)


def line(tier, pairs, n_bytes, *seconds):
    return {"event": "link", "tier": tier, "pairs": pairs, "bytes": n_bytes, "seconds": seconds}


def lines_of(tiers):
    """What a measurement of such links would print: three repeats, one of them disturbed."""
    records = [{"event": "all_reduce", "algorithm": "gloo", "bytes": 8, "seconds": [1.0]}]
    for tier in ("intra_node", "inter_node"):
        links = getattr(tiers, tier)
        for pairs in (1, 4):
            for n_bytes in (8, 1000, 4_000_000):
                true = links.seconds(n_bytes, pairs)  # a pair inside: two messages, the fewest
                records.append(line(tier, pairs, n_bytes, true, 100 * true, true))
    return records


@given(algorithm=everywhere, instances=counts, ranks_per_instance=counts)
def test_measured_lines_give_the_links_back(algorithm, instances, ranks_per_instance):
    tiers = HierarchicalLinks.from_measurements(lines_of(TIERS))
    place = {"instances": instances, "ranks_per_instance": ranks_per_instance}
    true = estimated_seconds(algorithm, 1e6, links=TIERS, **place)
    assert estimated_seconds(algorithm, 1e6, links=tiers, **place) == pytest.approx(true)


def test_lines_that_say_too_little_are_refused():
    with pytest.raises(ValueError, match=r"no record .*measure_all_reduce.py"):
        HierarchicalLinks.from_measurements([{"event": "all_reduce"}])
    with pytest.raises(ValueError, match="messages of three sizes or more"):
        two = [line("intra_node", 1, size, 1e-3) for size in (8, 1000)]
        HierarchicalLinks.from_measurements(two)
    intra_node = [line("intra_node", 1, size, size / 8e3) for size in (8, 80, 800)]
    one_instance = HierarchicalLinks.from_measurements(intra_node)
    assert estimated_seconds("ring", 80, 4, one_instance) > 0
    with pytest.raises(ValueError, match="travels between instances, and no link there"):
        estimated_seconds("ring", 80, 4, one_instance, instances=2)


def test_counts_that_make_no_sense_are_refused():
    for wrong, message in [
        ({"instances": 0, "ranks_per_instance": 2}, "instances is 0"),
        ({"instances": 2, "ranks_per_instance": 1.5}, "ranks_per_instance is 1.5"),
    ]:
        with pytest.raises(ValueError, match=message):
            all_reduces.steps("ring", 1, **wrong)
    with pytest.raises(ValueError, match="rate above 0"):
        alpha_beta.bound("ring", 1, instances=2, ranks_per_instance=1, bits_per_second=0)


@given(instances=counts, ranks_per_instance=counts)
def test_what_arrives_is_added(instances, ranks_per_instance):
    """A flat ring adds (N - 1) / N of the tensor, and so do two tiers, in two places."""
    place = {"instances": instances, "ranks_per_instance": ranks_per_instance}
    size = instances * ranks_per_instance
    adding = dataclasses.replace(TIERS, adding=1e-9)
    for algorithm, added in {"ring": (size - 1) / size, "naive": size - 1}.items():
        seconds = [estimated_seconds(algorithm, 8e6, links=x, **place) for x in (TIERS, adding)]
        assert seconds[1] - seconds[0] == pytest.approx(8e-3 * added, abs=1e-9)
    # One chunk: nothing overlaps.
    small = [estimated_seconds("hierarchical", 1e6, links=x, **place) for x in (TIERS, adding)]
    assert small[1] - small[0] == pytest.approx(1e-3 * (size - 1) / size, abs=1e-9)


def test_the_least_of_the_blocks_is_fitted_and_adding_is_read():
    records = [*lines_of(TIERS), {"event": "add", "bytes": 1000, "seconds": [5e-6, 2e-6]}]
    tiers = HierarchicalLinks.from_measurements(records)
    assert tiers.adding == pytest.approx(2e-9)
    assert tiers.inter_node.busy.beta == pytest.approx(
        TIERS.inter_node.seconds(1e9, 4) / 1e9, rel=0.01
    )
