"""Lesson 02, executed with smaller numbers; its recorded results are what is tested."""

import pytest


def test_the_ranks_share_as_they_should(results):
    assert results["notes"] == [42, 42]
    assert results["both_send_first"] == "both wait forever"
    assert results["sums"] == [[100, 104, 108, 112]] * 4
    assert results["pieces"] == [100, 104, 108, 112]


def test_the_ring_is_right_and_spreads_the_load(results):
    assert results["steps"] == 6 and results["halfway"] == [1111] * 4
    assert results["different_elements"] == 0
    assert results["through_rank_0"] == [2, 4, 6]
    busiest = {"naive": 6, "tree": 4, "ring": 3}
    assert busiest.items() <= results["busiest_rank_mb"].items()


@pytest.mark.shaping
def test_the_ring_wins_on_limited_links(results):
    """Bytes decide there: naive has 6 tensors on one link, the ring 1.5, at 25 MB/s."""
    assert results["sizes"] == [2_000_000, 400_000, 4_000] and not results["recorded"]
    assert 2.5 < results["gain"] < 5
    timed = {
        (event["algorithm"], event["bytes"]): min(event["seconds"])
        for event in results["events"]
        if event["event"] == "all_reduce"
    }
    for name, tensors in {"naive": 6, "tree": 4, "ring": 1.5, "gloo": 1.5}.items():
        # The first bytes after a pause may pass at once: the link's burst.
        assert timed[name, 2_000_000] > 0.85 * tensors * 2 / 25, name
    sent = results["on_cards"]
    assert sent and all(1 < bytes_ / 1_500_000 < 1.2 for bytes_ in sent), "1.5 MB and headers"


@pytest.mark.shaping
def test_single_messages_predict_it(results):
    """How well is a matter of the day: on a busy machine a wait for a core is added to each."""
    assert 0 <= results["alpha"] < 0.1 and 25 / 1.5 < 1e-6 / results["beta"] < 25 * 1.5
    assert abs(results["predicted_off"]["naive"]) < 0.4
    assert abs(results["predicted_off"]["ring"]) < 0.6
    assert results["faster_when_small"] in ("naive", "tree", "ring", "no difference shown")


def test_ring_and_ddp_train_what_one_process_trains(results):
    apart = results["furthest_apart"]
    assert apart.pop("alone, whole batch") == 0
    assert sorted(apart) == ["DDP", "our ring"] and max(apart.values()) < 1e-5


def test_torchrun_counts_processes(results):
    rows = sorted(results["torchrun"], key=lambda row: row["RANK"])
    places = [(row["RANK"], row["LOCAL_RANK"]) for row in rows]
    assert places == [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")]
    assert {row["WORLD_SIZE"] for row in rows} == {"4"} and {row["sum"] for row in rows} == {10}
    assert results["backends"]["gloo"] and not results["backends"]["mpi"]


def test_what_the_sampler_gives(results):
    assert results["reads"] == {"not given": 48, "given, no set_epoch": 12, "given, set_epoch": 12}
    assert results["seen"]["not given"] == 12
    assert results["seen"]["given, no set_epoch"] == 3 < results["seen"]["given, set_epoch"]
