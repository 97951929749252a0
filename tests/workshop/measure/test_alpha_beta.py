"""The alpha-beta model: its formulas, and that its messages make an all-reduce."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workshop.measure import all_reduces
from workshop.measure.alpha_beta import HierarchicalLinks, Link, SharedLinks, estimated_seconds

sizes = st.integers(1, 40)
LINK = Link(alpha=50e-6, beta=1e-9)


@given(alpha=st.floats(1e-6, 1), beta=st.floats(1e-12, 1e-6))
def test_a_fit_gives_alpha_and_beta_back(alpha, beta):
    true = Link(alpha, beta)
    link = Link.fit({n_bytes: true.seconds(n_bytes) for n_bytes in (8, 65_536, 10**6, 10**9)})
    assert link.alpha == pytest.approx(alpha, rel=1e-3)
    assert link.beta == pytest.approx(beta, rel=1e-3)


def test_a_fit_weighs_each_message_by_what_it_takes():
    """1 % more for the longest message moves the line less than 2 % anywhere."""
    disturbed = {8: 50e-6, 65_536: LINK.seconds(65_536), 10**7: 1.01 * LINK.seconds(10**7)}
    link = Link.fit(disturbed)
    for n_bytes, seconds in disturbed.items():
        assert link.seconds(n_bytes) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(
    ("seconds_by_bytes", "expected"),
    [
        ({8: 2e-3, 1000: 1e-3, 2000: 1.1e-3}, {"beta": 0.0}),  # waits for a core dominate
        ({1000: 1e-6, 2000: 4e-6, 4000: 9e-6}, {"alpha": 0.0}),
    ],
)
def test_neither_number_is_below_zero(seconds_by_bytes, expected):
    link = Link.fit(seconds_by_bytes)
    assert min(link.alpha, link.beta) == 0 < max(link.alpha, link.beta)
    for name, value in expected.items():
        assert getattr(link, name) == value


@given(n_bytes=st.floats(0, 1e9), world_size=sizes)
def test_the_formulas_of_the_lesson(n_bytes, world_size):
    link, n = LINK, world_size
    message, chunk = link.seconds(n_bytes), link.seconds(n_bytes / n)
    expected = {
        "naive": 2 * (n - 1) * message,
        "tree": 2 * math.ceil(math.log2(n)) * message,
        "ring": 2 * (n - 1) * chunk,
    }
    for name, seconds in expected.items():
        assert estimated_seconds(name, n_bytes, n, link) == pytest.approx(seconds)


@given(algorithm=st.sampled_from(["naive", "tree"]), world_size=sizes)
def test_the_messages_bring_every_ranks_part_to_every_rank(algorithm, world_size):
    contributions = [{rank} for rank in range(world_size)]
    for messages in all_reduces.steps(algorithm, 1, world_size):
        busy = [message.source for message in messages] + [message.to for message in messages]
        assert len(set(busy)) == len(busy), "one message for each rank and round"
        for message in messages:
            contributions[message.to] |= contributions[message.source]
    assert contributions == [set(range(world_size))] * world_size


def test_shared_links_are_slower_the_more_messages_travel():
    shared = SharedLinks(alone=Link(1.0, 0.0), busy=Link(7.0, 0.0), at_once=4)
    assert [shared.seconds(0, count) for count in (1, 2, 4)] == [1.0, 3.0, 7.0]
    tiers = HierarchicalLinks(intra_node=shared, inter_node=None)
    assert estimated_seconds("naive", 0, 4, tiers) == 6 * 1.0
    assert estimated_seconds("tree", 0, 4, tiers) == 2 * (3.0 + 1.0)
    assert estimated_seconds("ring", 0, 4, tiers) == 6 * 7.0
    assert SharedLinks(LINK, LINK, at_once=1).seconds(10, 1) == LINK.seconds(10)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match=r"'star' is not known. There are: naive, tree, ring"):
        estimated_seconds("star", 1, 2, LINK)
    with pytest.raises(ValueError, match="at least 1"):
        all_reduces.steps("ring", 1, 0)


def test_a_link_is_fitted_to_three_sizes_or_more():
    for seconds in ({8: 1.0, 16: 2.0}, {8: 0.0, 16: 1.0, 32: 2.0}):
        with pytest.raises(ValueError, match="three sizes"):
            Link.fit(seconds)
