"""The cost model against published scalings, and the file that has them."""

import math
from datetime import date

import pytest

from workshop.measure import published
from workshop.measure.published import PROTOCOLS, Machine, all_reduce_seconds, predictions

TWO_P4D = Machine(instances=2, ranks_each=8, intra=300e9, inter=50e9)
FOUR_P4D = Machine(instances=4, ranks_each=8, intra=300e9, inter=50e9)
ONE_P4D = Machine(instances=1, ranks_each=8, intra=300e9, inter=50e9)
TWO_P5 = Machine(instances=2, ranks_each=8, intra=450e9, inter=400e9)


def test_bytes_cross_the_network_once_by_a_tree_on_two_instances_and_nearly_twice_by_a_ring():
    assert published.bytes_seconds(50e9, TWO_P4D, "tree") == pytest.approx(1)
    assert published.bytes_seconds(50e9, TWO_P4D, "ring") == pytest.approx(2 * 15 / 16)
    assert published.bytes_seconds(50e9, FOUR_P4D, "tree") == pytest.approx(2)


def test_one_instance_uses_no_network():
    assert published.bytes_seconds(300e9, ONE_P4D, "ring") == pytest.approx(2 * 7 / 8)
    assert published.bytes_seconds(300e9, ONE_P4D, "tree") == pytest.approx(2 * 7 / 8)


def test_on_two_p5_the_links_within_an_instance_bind():
    assert published.bytes_seconds(450e9, TWO_P5, "tree") == pytest.approx(2 * 7 / 8)


def test_a_ring_crosses_each_border_twice_and_a_tree_as_often_as_it_is_deep():
    simple = PROTOCOLS["Simple"]
    ring = simple.call + 2 * 3 * 14e-6 + (2 * 31 - 6) * 3.4e-6
    tree = simple.call + 2 * 7 * 4e-6 + 2 * math.log2(4) * 14e-6
    assert published.latency_seconds(FOUR_P4D, "ring", simple) == pytest.approx(ring)
    assert published.latency_seconds(FOUR_P4D, "tree", simple) == pytest.approx(tree)


def test_the_fastest_way_is_taken_unless_an_algorithm_is_forced():
    ring, tree = (all_reduce_seconds(1e9, TWO_P4D, name) for name in ("ring", "tree"))
    assert all_reduce_seconds(1e9, TWO_P4D) == tree < ring
    assert all_reduce_seconds(8, FOUR_P4D) < all_reduce_seconds(8, FOUR_P4D, "ring")
    with pytest.raises(ValueError, match="there are ring, tree"):
        all_reduce_seconds(8, FOUR_P4D, "star")


def test_a_step_hides_at_most_two_thirds_of_its_computing():
    step = {"compute_ms": 300, "gradient_bytes": 12.5e9, "exchange": "parameter_server"}
    machine = Machine(instances=2, ranks_each=8, intra=300e9, inter=50e9)  # exchange: 0.25 s
    assert published.step_seconds(step, machine) == pytest.approx((0.35, 0.55))
    short = step | {"gradient_bytes": 5e9}  # 0.1 s: all of it can be hidden, and no more
    assert published.step_seconds(short, machine) == pytest.approx((0.3, 0.4))
    with pytest.raises(ValueError, match="No exchange 'post'"):
        published.exchange_seconds(step | {"exchange": "post"}, machine)


def test_every_published_number_has_a_source_a_day_and_a_prediction():
    rows = predictions()
    assert rows["source"].nunique() >= 8 and len(rows) >= 40
    for source in published.sources():
        assert source["url"].startswith("https://") and source["machine"]
        assert date(2026, 1, 1) < source["read"] <= date.today()
        errors = rows.loc[rows["source"] == source["name"], "error"].abs()
        assert errors.max() < 0.25 or source["why"], f"{source['name']}: why is it so far off?"
    assert (rows["predicted_ms"] > 0).all() and (rows["measured_ms"] > 0).all()


def test_the_error_of_a_step_is_how_far_it_is_outside_the_two_computed_times(tmp_path):
    path = tmp_path / "scalings.toml"
    path.write_text(
        """
        [[source]]
        name = "one"
        intra = 1e3
        inter = 1
        instances = 2
        ranks_each = 1
        step = [
          { model = "within", compute_ms = 100, gradient_bytes = 1e8, efficiency = 0.7 },
          { model = "too fast", compute_ms = 100, gradient_bytes = 1e8, efficiency = 1 },
          { model = "too slow", compute_ms = 100, gradient_bytes = 1e8, efficiency = 0.25 },
        ]
        """
    )
    errors = predictions(path).set_index("case")["error"]
    assert errors["within"] == 0
    assert errors["too fast"] == pytest.approx(1 / 3, abs=0.01)
    assert errors["too slow"] == pytest.approx(-0.5, abs=0.01)
