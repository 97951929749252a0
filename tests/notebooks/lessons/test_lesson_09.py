"""Lesson 09, executed with smaller numbers; its recorded results are what is tested."""

import pytest

from workshop.launch.horovod import horovod_status


def test_lesson_09(results):
    assert results["variables"] == ["SM_CHANNEL_TEST", "SM_CHANNEL_TRAINING"]
    assert len(set(results["files_seen"])) == 4 and sum(results["images_seen"]["training"]) == 1437
    assert results["images_seen"]["test"] == [360, 360] and results["world_size"] == "not told"
    assert results["read"]["both divide"]["never"] == pytest.approx(50, abs=0.5)
    assert results["read"]["nobody divides"] == {"never": 0, "once": 0, "twice": 100}
    waiting = results["waiting"]
    ways = {"one by one", "one by one again", "2 workers", "1 file, 2 workers", "1 file"}
    assert set(waiting) == set(results["step_ms"]) == ways
    assert waiting["1 file"]["max"] < waiting["one by one"]["min"], "the requests do not show"
    assert waiting["2 workers"]["median"] < waiting["one by one"]["median"], "nobody fetched ahead"
    assert results["factor"] > 5, "100 requests took hardly longer than one"
    # What ten at a time gain depends on the cores that the emulator has.
    assert 1 < results["pool_factor"] < 1.5 * results["factor"]
    assert results["accuracy_mixed"] > results["accuracy_apart"] + 0.1
    assert results["passes"] == pytest.approx(3.2), "100 steps of 64 pictures, of 2,000"
    by_file, by_record = (results["orders"][name] for name in ("files shuffled", "records, too"))
    assert by_file == list(range(by_file[0], by_file[0] + 6)), "in the file's order"
    assert by_record != sorted(by_record)
    assert results["resumed"] == {
        "the epoch again": {"seen twice": 640, "never seen": 0, "as planned": False},
        "skip, another seed": dict(
            results["resumed"]["skip, another seed"], **{"as planned": False}
        ),
        "skip, the same seed": {"seen twice": 0, "never seen": 0, "as planned": True},
    }
    lost = results["resumed"]["skip, another seed"]
    assert lost["seen twice"] == lost["never seen"] > 0, "what is seen twice displaces another"
    assert results["tfrecord_records"] == 250 and results["tfrecord_bytes"] > 3072
    assert results["streamed"]["megabytes"] == 1 and results["streamed"]["grown_megabytes"] > 2
    assert results["pixels_misplaced"] > 0.5
    assert min(results["accuracy_of_readings"].values()) > 0.2
    assert 0 < results["usd"] < results["usd_at_most"] < 1


@pytest.mark.skipif(not horovod_status().available, reason=str(horovod_status()))
def test_lesson_09_trains_from_tfrecord_files(results):
    assert results["picture_ranks"] == 2 and results["picture_accuracy"] > 0.15
