"""Lesson 01, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

ROUNDING = 1e-6  # of gradients around 0.1 in float32


@pytest.fixture(scope="module")
def lesson(lesson_run):
    return lesson_run("01")


def test_averaged_gradients_are_the_whole_batchs(lesson):
    results = lesson.results
    assert results["between_ranks"] == 0
    for name in ("gradient_difference", "ddp_difference", "stage_difference"):
        assert 0 <= results[name] < ROUNDING, name


def test_broken_averages_are_not(lesson):
    results = lesson.results
    broken = results["broken"]
    assert set(broken) == {"unequal shards, mean", "equal shards, sum", "batch normalisation"}
    assert all(value > 100 * ROUNDING for value in broken.values()), broken
    assert results["sum_factor"] == pytest.approx(4, rel=1e-4)


def test_model_parallel_sends_by_image_and_data_parallel_by_weight(lesson):
    results = lesson.results
    assert results["stage_kb"] == pytest.approx([8.192, 32.768, 131.072, 524.288])
    assert results["gradient_kb"] == pytest.approx([54.824] * 4)


def test_async_is_stale(lesson):
    """Whether it is faster is a matter of the day: lesson 03 has a worker that is really slow."""
    results = lesson.results
    assert results["staleness"]["sync"] == 0 and results["staleness"]["async"] > 0.5
    assert min(results["gradients_per_second"].values()) > 0


def test_speed_is_measured_three_ways(lesson):
    results = lesson.results
    assert set(results["speeds"]) == {"1 rank", "2 independent ranks", "2 ranks together"}
    assert all(value > 0 for value in results["speeds"].values())
    # How fast is a matter of the day: a quiet machine shows 0.9 and more of its ceiling.
    assert results["of_ceiling"] > 0 and results["ceiling"] > 0
    assert len(results["by_threads"]) == 5 and all(
        value > 0 for value in results["by_threads"].values()
    )


def test_the_formula_tells_the_good_configuration_from_the_bad(lesson):
    results = lesson.results
    good, bad = "large batch, small model", "small batch, large model"
    assert set(results["real"]) == set(results["predicted"]) == {good, bad}
    assert results["predicted"][bad] < results["predicted"][good] <= 2
    # They are far apart, about 1.8 and 0.4 on a quiet machine, and were measured alternately.
    assert results["real"][bad] < results["real"][good]
    assert results["limit"][bad] < results["limit"][good]
    # What one exchange says of many ranks is a range: all latency, or all bytes.
    for name, (low, high) in results["at_most_ranks"].items():
        assert low < high, name
    assert results["communicating"][good] < results["communicating"][bad] < 1


def test_the_learning_rate_makes_up_for_fewer_updates(lesson):
    results = lesson.results
    right = results["accuracies"]
    assert sorted(results["updates"].values()) == [20, 20, 100, 100, 100, 880]
    assert results["updates"]["1 x 32 images"] == 880
    assert right["1 x 32 images"] > 0.95
    assert right["1 x 32 images"] > right["8 x 32, rate x 8"] > right["8 x 32, same rate"] + 0.05
    # With as many updates at a smaller rate it learns more: the rate broke it, not the batch alone.
    far, calm = "32 x 32, rate x 32, warm-up", "32 x 32, rate x 8, warm-up"
    assert right[far] < 0.5 and right[calm] > right[far]
    assert results["last_losses"][far] > results["last_losses"][calm]


def test_ranks_on_two_instances_end_with_one_model(lesson):
    texts = [
        output.get("data", {}).get("text/plain", "")
        for cell in lesson.notebook.cells
        for output in cell.get("outputs", [])
    ]
    assert any("2 x ml.c5.xlarge" in text for text in texts), "the price is said before the job"
    weights = lesson.results["ddp_weights"]
    assert len(weights) == 2 and len(set(weights)) == 1
