"""Links and all-reduces measured on two real ranks; a busy moment does not end it."""

import pytest

from workshop.launch.ranks import start_ranks
from workshop.measure import all_reduces, alpha_beta, collectives


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(2) as started:
        yield started


def test_links_and_all_reduces_of_real_ranks(ranks):
    links = collectives.measure_alpha_beta(ranks, 4_000_000, blocks=5)
    assert links.at_once == 2 and 0 < links.alone.beta < 1e-6
    table = collectives.measure_all_reduces(ranks, [1000, 40_000], links, blocks=2)
    assert list(table["algorithm"]) == [*all_reduces.ALGORITHMS, "gloo"] * 2
    assert (table["measured"] > 0).all()
    known = table[table["algorithm"] != "gloo"]
    assert table["predicted"].isna().sum() == 2
    for row in known.itertuples():
        expected = alpha_beta.estimated_seconds(row.algorithm, row.bytes, 2, links)
        assert row.predicted == expected


def test_a_busy_moment_is_measured_again(monkeypatch):
    class Two:
        world_size = 2

    def least(ranks, names, n_bytes, blocks):
        calls.append(n_bytes)
        busy = n_bytes == 8 and len(calls) == 1
        return dict.fromkeys(names, 9.0 if busy else 1.0 + n_bytes * 1e-3)

    calls = []
    monkeypatch.setattr(collectives, "least_seconds", least)
    links = collectives.measure_alpha_beta(Two, 1000, blocks=1)
    assert calls == [8, 1000, 8, 1000]
    assert links.alone.beta == pytest.approx(1e-3) and links.alone.alpha == pytest.approx(1.0)


def test_a_machine_that_is_always_busy_is_said(monkeypatch):
    class Two:
        world_size = 2

    monkeypatch.setattr(
        collectives, "least_seconds", lambda *given: dict.fromkeys(given[1], 1 / given[2])
    )
    with pytest.raises(ValueError, match="Is the machine busy"):
        collectives.measure_alpha_beta(Two, 1000, blocks=1)
