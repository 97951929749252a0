"""Lesson 01, executed with smaller numbers; its recorded results are what is tested."""

import pytest

ROUNDING = 1e-6  # of gradients around 0.1 in float32


def test_averaged_gradients_are_the_whole_batchs(results):
    assert results["between_ranks"] == 0
    for name in ("gradient_difference", "ddp_difference"):
        assert 0 <= results[name] < ROUNDING, name


def test_broken_averages_are_not(results):
    broken = results["broken"]
    assert set(broken) == {"unequal shards, mean", "equal shards, sum", "batch normalisation"}
    assert all(value > 100 * ROUNDING for value in broken.values()), broken
    assert results["sum_factor"] == pytest.approx(4, rel=1e-4)


def test_workloads_lie_on_the_map(results):
    """How fast, and which exchanges more, is a matter of the day: five rounds of two steps here."""
    scaling = results["scaling"]
    assert set(scaling) == {"large", "small", "small, weak"}
    for record in scaling.values():
        assert record["world_size"] == 2 and record["speed_up"]["median"] > 0
        for name in ("speed_up", "ceiling", "share", "r", "noise"):
            low, median, high = (record[name][key] for key in ("low", "median", "high"))
            # The noise reaches to its median round: the same number, but for rounding.
            assert low * (1 - 1e-9) <= median <= high * (1 + 1e-9), name


def test_a_verdict_is_computed_from_the_rounds(results):
    verdicts = results["verdicts"]
    assert len(verdicts) == 2
    large, small = (results["scaling"][name]["speed_up"] for name in ("large", "small"))
    assert verdicts[0] != "slower" or large["median"] < 1
    assert verdicts[1] != "faster" or small["median"] > 1


def test_where_a_step_goes(results):
    for parts in results["parts"].values():
        assert set(parts) == {"compute", "wait", "exposed communication"}
        assert parts["compute"] > 0 and min(parts.values()) >= 0


def test_more_ranks_are_computed_from_the_r_of_two(results):
    r = results["scaling"]["small"]["r"]["median"]
    column = results["more_ranks"]["small, strong (64 images)"]
    assert column["2, computed"] == f"{2 / (1 + r):.2g}"
    assert column["4, computed"].endswith(f"{4 / (1 + 3 * r):.2g}"), "bytes: 1.5 times, twice r"


def test_trainings_of_practice_are_placed_by_their_inputs(results):
    """Worked out by hand: 2 * 15/16 * 102.4 MB over 1.25 GB/s against 64 / 380 s, and so on."""
    expected = {
        "ResNet-50, 16 V100, 10 Gbit/s": 0.912,
        "6.7 billion, 128 A100, EFA": 0.0542,
        "6.7 billion, 1,024 A100, EFA": 0.459,
    }
    assert results["practice"] == pytest.approx(expected, rel=0.01)


def test_the_learning_rate_makes_up_for_fewer_updates(results):
    right = results["accuracies"]
    assert sorted(results["updates"].values()) == [20, 20, 100, 100, 100, 880]
    assert results["updates"]["batch 32"] == 880
    assert right["batch 32"] > 0.95
    assert right["batch 32"] > right["batch 256, rate x 8"] > right["batch 256, same rate"] + 0.05
    # With as many updates at a smaller rate it learns more: the rate broke it, not the batch alone.
    far, calm = "batch 1,024, rate x 32, warm-up", "batch 1,024, rate x 8, warm-up"
    assert right[far] < 0.5 and right[calm] > right[far]
    assert results["last_losses"][far] > results["last_losses"][calm]


def test_ranks_on_two_instances_end_with_one_model(lesson, results):
    assert "2 x ml.c5.xlarge" in lesson.shown, "the price is said before the job"
    weights = results["ddp_weights"]
    assert len(weights) == 2 and len(set(weights)) == 1
