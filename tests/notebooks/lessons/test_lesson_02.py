"""Lesson 02, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def lesson(lesson_run):
    return lesson_run("02")


def test_the_ranks_share_as_they_should(lesson):
    results = lesson.results
    assert results["notes"] == [42, 42]
    assert results["both_send_first"] == "both wait forever"
    assert results["sums"] == [[100, 104, 108, 112]] * 4
    assert results["pieces"] == [100, 104, 108, 112]


def test_the_ring_is_right_and_spreads_the_load(lesson):
    results = lesson.results
    assert results["steps"] == 6 and results["halfway"] == [1111] * 4
    assert results["different_elements"] == 0
    assert results["through_rank_0"] == [2, 4, 6]
    busiest = {"naive": 6, "tree": 4, "ring": 3}
    assert busiest.items() <= results["busiest_rank_mb"].items()


def test_measured_seconds_stand_beside_predicted_ones(lesson):
    results = lesson.results
    assert results["sizes"] == [256, 2048, 16384, 131072, 1048576]
    assert (
        0 < results["alpha"] < 1 and 0 < results["beta"] < 1e-6 and 0 < results["busy_beta"] < 1e-5
    )
    # How far apart is a matter of the day: on a busy machine a wait for a core is added to each.
    assert results["off"] > 0 and results["gain"] > 0


def test_ring_and_ddp_train_what_one_process_trains(lesson):
    results = lesson.results
    apart = results["furthest_apart"]
    assert apart.pop("alone, whole batch") == 0
    assert sorted(apart) == ["DDP", "our ring"] and max(apart.values()) < 1e-5


def test_torchrun_counts_processes(lesson):
    results = lesson.results
    rows = sorted(results["torchrun"], key=lambda row: row["RANK"])
    assert [(row["RANK"], row["LOCAL_RANK"]) for row in rows] == [
        ("0", "0"),
        ("1", "1"),
        ("2", "0"),
        ("3", "1"),
    ]
    assert {row["WORLD_SIZE"] for row in rows} == {"4"} and {row["sum"] for row in rows} == {10}
    assert results["backends"]["gloo"] and not results["backends"]["mpi"]


def test_what_the_sampler_gives(lesson):
    results = lesson.results
    assert results["reads"] == {"not given": 48, "given, no set_epoch": 12, "given, set_epoch": 12}
    assert results["seen"]["not given"] == 12
    assert results["seen"]["given, no set_epoch"] == 3 < results["seen"]["given, set_epoch"]


def test_data_parallel_is_one_process_and_ddp_two(lesson):
    results = lesson.results
    hashes = results["hashes"]
    assert len(hashes) == 3 and min(results["images_per_second"].values()) > 0
    assert hashes["DDP, 2 processes"] != hashes["one process"]
