"""Lesson 03, executed with smaller numbers; its recorded results are what is tested."""

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_03(lesson_run):
    run = lesson_run("03")
    results = run.results
    # A server that waits trains what one process trains; one that does not has stale gradients.
    assert results["sync_difference"] < 1e-4
    assert results["sync_staleness"] == 0
    assert results["async_staleness"] == pytest.approx(3, abs=0.2)
    assert results["most_stale"] >= 3
    assert results["slow_share"] < 0.25 and results["speed_up"] > 1
    slowest = results["stale_by_worker"].pop("4")
    assert slowest > max(results["stale_by_worker"].values())
    accuracy = results["accuracy_by_way"]
    assert accuracy["async"] < accuracy["small updates, not stale"]
    # The bytes grow with the workers, 1, 2 and 4 of them, as the formula says.
    single, two, four = results["kb_at_server"]
    assert (two / single, four / single) == (pytest.approx(2, rel=0.02), pytest.approx(4, rel=0.02))
    assert results["computed_kb"] == pytest.approx(results["kb_at_server"], rel=0.1)
    # Each host runs a server; all but the first train.
    assert results["tasks"] == {"algo-1": "master", "algo-2": "worker", "algo-3": "worker"}
    assert results["trains"] == 2 and results["servers"] == 3
    assert set(results["variables_by_ps"]) == {"0", "1", "2"}
    # The workers of the one job train one model; those of the other do not, and it ends well.
    broken, synced = list(results["known"][:2]), results["known"][2:]
    assert broken == [5, 5] and synced == [10]
    assert results["accuracy"] >= 0.85 and max(results["broken_accuracy"]) < 0.6
    assert results["broken_status"] == "Completed" and results["broken_weights"] == 2


@pytest.mark.shaping
def test_the_servers_seconds_grow_with_the_workers(lesson_run):
    results = lesson_run("03").results
    assert not results["recorded"]
    assert 2.5 < results["growth"] < 5 and results["ring_gain"] > 2.5
    assert all(-0.25 < off < 0.6 for off in results["off_bytes"]), results["off_bytes"]
