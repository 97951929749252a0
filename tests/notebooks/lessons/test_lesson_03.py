"""Lesson 03, executed with smaller numbers; its recorded results are what is tested."""

import numpy as np
import pytest
from course_text import cells, lessons, read
from lesson_runs import SEAT

import data_prep
import workshop
from data_prep.channels import write_channels
from local_sagemaker.pytest_plugin import emulator


def test_lesson_03(results):
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
def test_the_servers_seconds_grow_with_the_workers(results):
    assert not results["recorded"]
    assert 2.5 < results["growth"] < 5 and results["ring_gain"] > 2.5
    assert all(-0.25 < off < 0.6 for off in results["off_bytes"]), results["off_bytes"]


@pytest.mark.soak
def test_the_first_half_trains_on_mnist(tmp_path, monkeypatch, capsys):
    """From its set-up to the first training, on a few images of MNIST's shape: no download."""
    random = np.random.default_rng(0)

    def prepare(out, quiet):
        part = {n: (random.integers(256, size=(n, 28, 28, 1), dtype=np.uint8)) for n in (640, 64)}
        channels = {
            name: (images, random.integers(10, size=len(images)))
            for name, images in zip(("training", "test"), part.values(), strict=True)
        }
        return write_channels(out, lambda: channels, {"training": 2, "test": 1}, quiet=quiet)

    monkeypatch.setattr(data_prep.mnist, "prepare", prepare)
    monkeypatch.setattr(workshop, "DATA", tmp_path)
    monkeypatch.setattr("workshop.jobs.session.DATA", tmp_path)
    names = {"__name__": "__main__"}
    with emulator(tmp_path / "state", ["--isolation", "processes"]):  # recorded: no first job
        for cell in (part for part in cells(read(lessons()["03"])) if part.kind == "code"):
            if "figure" not in cell.tags:
                exec(compile(cell.text, "a cell", "exec"), names)
            if "parameters" in cell.tags:
                names |= {"dataset": "mnist", "steps": 3, "seat": SEAT}
            if "sync" in names:
                break
    names["ranks"].stop()
    assert names["channels"]["training"].endswith("/data/mnist/training")
    assert len(names["sync"]["pushes"]) == 3 * names["workers"]
    assert sum(part.size for part in names["sync"]["weights"]) == 105_866
