"""Lesson 03, executed with smaller numbers; its recorded results are what is tested."""

import numpy as np
import pytest
from course_text import cells, lessons, read
from lesson_runs import SEAT

import data_prep
import workshop
from data_prep.channels import write_channels
from local_sagemaker.pytest_plugin import emulator

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]


def test_lesson_03(lesson_run):
    run = lesson_run("03")
    found = run.results
    # A server that waits trains what one process trains; one that does not has stale gradients.
    assert found["sync_difference"] < 1e-4
    assert found["sync_staleness"] == 0
    assert found["async_staleness"] == pytest.approx(3, abs=0.2)
    assert found["most_stale"] >= 3
    assert found["slow_share"] < 0.25 and found["speed_up"] > 1
    slowest = found["stale_by_worker"].pop("4")
    assert slowest > max(found["stale_by_worker"].values())
    accuracy = found["accuracy_by_way"]
    assert accuracy["async"][1] < accuracy["small updates, not stale"][1]
    # The bytes grow with the workers, 1, 2 and 4 of them, as the formula says.
    one, two, four = found["kb_at_server"]
    assert (two / one, four / one) == (pytest.approx(2, rel=0.02), pytest.approx(4, rel=0.02))
    assert found["computed_kb"] == pytest.approx(found["kb_at_server"], rel=0.1)
    # Each host runs a server; all but the first train.
    assert found["tasks"] == {"algo-1": "master", "algo-2": "worker", "algo-3": "worker"}
    assert found["trains"] == 2 and found["servers"] == 3
    assert set(found["variables_by_ps"]) == {"0", "1", "2"}
    # The workers of the one job train one model; those of the other do not, and it ends well.
    broken, synced = list(found["known"][:2]), found["known"][2:]
    assert broken == [5, 5] and synced == [10]
    assert found["accuracy"] >= 0.85 and max(found["broken_accuracy"]) < 0.6
    assert found["broken_status"] == "Completed" and found["broken_weights"] == 2


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
    names = {"__name__": "__main__"}
    with emulator(tmp_path / "state"):
        for cell in (one for one in cells(read(lessons()["03"])) if one.kind == "code"):
            if "figure" not in cell.tags:
                exec(compile(cell.text, "a cell", "exec"), names)
            if "parameters" in cell.tags:
                names |= {"dataset": "mnist", "steps": 3, "seat": SEAT}
            if "sync" in names:
                break
    names["ranks"].stop()
    assert names["channels"]["training"].endswith("/data/mnist/training")
    assert len(names["sync"]["pushes"]) == 3 * names["workers"]
    assert sum(one.size for one in names["sync"]["weights"]) == 105_866
