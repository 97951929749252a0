"""What is kept of a measurement, and shown elsewhere: with its date, and never by mistake."""

import json
from datetime import date
from statistics import median

import nbformat
import pytest

from workshop.jobs import bandwidth
from workshop.lesson import reference_results
from workshop.lesson.reference_results import NEEDED
from workshop.lesson.results import MIME
from workshop.measure import held_out, overlap
from workshop.measure.alpha_beta import HierarchicalLinks

WAYS = ("ddp", "zero1", "zero2", "zero3", "hsdp")


def page(folder, **results):
    output = nbformat.v4.new_output("display_data", data={MIME: results})
    cells = [nbformat.v4.new_code_cell("", outputs=[output])]
    path = folder / "06_vpc_colocation.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize("lesson", NEEDED)
def test_what_is_kept_is_whole_and_dated(lesson):
    reference = reference_results.load(lesson)
    assert set(reference.results) == set(NEEDED[lesson])
    assert date(2026, 1, 1) < date.fromisoformat(reference.date) <= date.today()
    assert reference.date in reference.caption and "not measured here" in reference.caption


def test_the_kept_lines_are_enough_for_the_cost_model():
    events = reference_results.load("07").results["events"]
    tiers = HierarchicalLinks.from_measurements(events)
    assert tiers.intra_node and tiers.inter_node
    names = {event["algorithm"] for event in events if event["event"] == "all_reduce"}
    kinds = {"gloo", "ring", "interleaved_ring", "hierarchical", "mini_herring"}
    assert names == kinds | {"gloo again"}


def test_the_kept_steps_of_lesson_11_are_of_the_link_that_is_named():
    """A step takes its bytes / bandwidth at least; with DDP little more than that and computing."""
    results = reference_results.load("11").results
    by_way = {event.get("way"): event for event in results["events"]}
    rounds = by_way[None]  # the line that names no way, but has the seconds of each
    seconds = {name: median(rounds[name]) for name in (*WAYS, "nothing exchanged")}
    for way in WAYS:
        on_link = 8 * by_way[way]["card_bytes"] / 1e6 / bandwidth.mbit(results["link"])
        assert seconds[way] > on_link, way
        assert seconds[way] < 1.3 * (seconds["nothing exchanged"] + on_link), way


def test_the_kept_benchmarks_judge_the_model_on_forty_points_or_more():
    jobs = reference_results.load("07", "links").results["jobs"]
    recorded = reference_results.load("07", "steps").results
    steps = held_out.steps(recorded["jobs"], recorded["alone"], recorded["cores"])
    assert len(held_out.all_reduces(jobs)) + len(steps) >= 40 and len(steps) > 0
    assert len(reference_results.load("07", "tiers").results["jobs"]) == 5
    swept = reference_results.load("07", "overlap").results["jobs"]
    assert all(overlap.most_hidden(job["seconds"]) > 0 for job in swept) and len(swept) >= 5


def test_results_are_kept_and_read_again(tmp_path):
    results = {"sweep": [{"link": "wide"}], "gradient_bytes": 4, "placed": [], "more": 1}
    path = reference_results.keep(page(tmp_path, **results), tmp_path)
    written = json.loads(path.read_text())
    assert written["date"] == reference_results.load("06", folder=tmp_path).date
    del results["more"]
    assert reference_results.load("06", folder=tmp_path).results == results


@pytest.mark.parametrize(
    "results, message",
    [
        ({"sweep": [], "gradient_bytes": 4}, "has no placed"),
        ({"sweep": [], "gradient_bytes": 4, "placed": [], "recorded": True}, "shows kept results"),
    ],
)
def test_a_page_that_measured_nothing_is_refused(tmp_path, results, message):
    with pytest.raises(ValueError, match=message):
        reference_results.keep(page(tmp_path, **results), tmp_path)
    assert not list(tmp_path.glob("*.json"))
