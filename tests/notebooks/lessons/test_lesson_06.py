"""Lesson 06, executed with smaller numbers; its recorded results are what is tested."""

import pytest
from lesson_runs import SMALL

pytestmark = pytest.mark.shaping


def test_lesson_06(lesson, results):
    assert results["network"]["subnets"][0].startswith("subnet-")
    inside = [rule for rule in results["rules"] if rule["with"] == "itself"]
    assert {rule["direction"] for rule in inside} == {"in", "out"}
    others = [rule for rule in results["rules"] if rule not in inside]
    assert others == [{"direction": "out", "ports": "443 to 443", "with": "0.0.0.0/0"}]
    check_the_sweep(results)
    check_the_layouts(results)
    check_the_published(results)
    # At least three hops of 1 ms each, where this kernel can delay packets.
    added, why = results["latency_added"], results["not_delayed"]
    assert why if added is None else added > 2.7
    assert 0 < results["usd"] < results["usd_at_most"] < 3
    assert "network: deleted" in lesson.printed.replace("workshop-tests-", "")


def check_the_sweep(results):
    """A step over a narrow link lasts at least as long as its bytes, and one rank sends nothing.

    How much longer, and how fast one instance is, no test says: the ranks share the cores with
    whatever else this machine does.
    """
    sweep = results["sweep"]
    assert {row["link"] for row in sweep} == set(SMALL["06"]["links"])
    assert len(sweep) == SMALL["06"]["jobs_each"] * SMALL["06"]["rounds"] * 2
    on_the_link = results["gradient_bytes"] * 8 / 25e6
    for row in sweep:
        assert min(row["alone"], row["step"], row["again"]) > 0
        if row["link"] == "25mbit":
            assert row["step"] > 0.9 * on_the_link and row["exchange"] > 0.9 * on_the_link
    assert set(results["verdicts"]) == set(SMALL["06"]["links"])


def check_the_layouts(results):
    seconds = {(row["placement"], row["algorithm"]): row["measured"] for row in results["placed"]}
    assert set(seconds) == {("1 x 8", "gloo"), ("2 x 4", "gloo"), ("2 x 4", "hierarchical")}
    # Over each link of 200 Mbit/s go 2 x 7/8 of 4 MB, or 2 x 1/2: what is over, the cores took.
    for algorithm, part in {"gloo": 7 / 8, "hierarchical": 1 / 2}.items():
        assert seconds["2 x 4", algorithm] > 0.9 * 2 * part * 4e6 * 8 / 200e6
    assert all(row["predicted"] > 0 for row in results["placed"])


def check_the_published(results):
    rows = results["published"]
    assert len({row["source"] for row in rows}) >= 8
    ranks = [row["ranks"] for row in results["scaled"]]
    assert ranks[0] == 8 and ranks[-1] == 2048
    assert results["turned"] in ranks
