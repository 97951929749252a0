"""The model's errors: from records of links and all-reduces to points, a summary, wrong winners."""

import pandas as pd
import pytest

from workshop.measure import held_out, overlap
from workshop.measure.alpha_beta import estimated_seconds
from workshop.measure.step_time import Compute, step_seconds

SIZES = (262_144, 524_288, 1_048_576)
ALPHA = {"intra_node": 1e-4, "inter_node": 1e-3}


def link_events(mbit, at_once=4):
    """Links on which a message takes alpha + bytes / rate, and 5 % of the bytes are headers."""
    for tier, alpha in ALPHA.items():
        rate = 8e9 if tier == "intra_node" else mbit * 1e6
        for pairs in (1, at_once):
            for size in SIZES:
                seconds = alpha + 1.05 * pairs * 8 * size / rate
                about = {"event": "link", "tier": tier, "pairs": pairs, "bytes": size}
                yield about | {"seconds": [seconds, 9 * seconds, seconds]}


def job(mbit, instances=2, ranks=4, latency_ms=0, algorithms=("ring", "hierarchical"), **factors):
    """A job whose all-reduces take what the model says, times the factor of the algorithm."""
    where = {"instances": instances, "ranks_per_instance": ranks}
    events = [{"event": "placement", **where}, *link_events(mbit)]
    about = {"mbit": mbit, "latency_ms": latency_ms, **where}
    tiers = held_out.links_of(CALIBRATION, mbit, latency_ms)
    for algorithm in algorithms:
        for size in (1_000_000, 8_000_000):
            seconds = estimated_seconds(algorithm, size, links=tiers, **where)
            seconds *= factors.get(algorithm, 1.0)
            record = {"event": "all_reduce", "algorithm": algorithm, "bytes": size}
            events.append(record | {"seconds": [seconds, seconds, 5 * seconds]})
    return about | {"events": events}


PLACE = {"instances": 2, "ranks_per_instance": 4}
ABOUT = {"latency_ms": 0, **PLACE}
CALIBRATION = {"mbit": 200, **ABOUT, "events": list(link_events(200))}


def test_other_rates_layouts_and_latencies_are_predicted_from_the_first_job():
    jobs = [
        CALIBRATION,
        job(100),
        job(400, 2, 2),
        job(200, 4, 1),
        job(200, latency_ms=1),
    ]
    points = held_out.all_reduces(jobs)
    assert len(points) == 4 * 4 and points["error"].abs().max() < 1e-9
    slow = points[(points["mbit"] == 100) & (points["bytes"] == 8_000_000)]
    # 14 steps of a chunk of 1 MB, 5 % of headers, at 12.5 MB/s
    ring = slow[slow["algorithm"] == "ring"]["predicted"].item()
    assert ring == pytest.approx(14 * (1e-3 + 1.05 * 1 / 12.5), rel=1e-3)


def test_a_latency_is_added_to_each_message_between_instances():
    near = held_out.links_of(CALIBRATION, 200)
    far = held_out.links_of(CALIBRATION, 200, latency_ms=2)
    assert far.inter_node.busy.alpha == pytest.approx(near.inter_node.busy.alpha + 2e-3)
    assert far.intra_node == near.intra_node
    assert far.inter_node.busy.beta == near.inter_node.busy.beta


def test_a_link_that_was_not_measured_is_said():
    inside = [event for event in CALIBRATION["events"] if event["tier"] == "intra_node"]
    with pytest.raises(ValueError, match="No link between instances was measured"):
        held_out.links_of(CALIBRATION | {"events": inside}, 100)


def test_bytes_alone_know_neither_headers_nor_latencies():
    points = held_out.all_reduces([CALIBRATION, job(100), job(100, latency_ms=5)])
    ring = held_out.by_bytes(points[points["algorithm"] == "ring"])
    assert list(ring["predicted"]) == pytest.approx(2 * [2 * 7 / 8 / 12.5, 2 * 7 / 12.5])
    assert (ring["error"] < -0.04).all() and points["error"].abs().max() < 1e-9


def test_a_rule_takes_one_of_those_that_send_equally_many_bytes():
    """With one rank per instance a ring and two tiers send the same; with four they don't."""
    near, far = job(200, ranks=1), job(100)
    points = held_out.all_reduces([CALIBRATION, near, far])
    differ = held_out.where_bytes_differ(points)
    assert set(points["ranks_per_instance"]) == {1, 4}
    assert set(differ["ranks_per_instance"]) == {4}
    tied = points[points["ranks_per_instance"] == 1]
    for first in ("ring", "hierarchical"):
        ruled = held_out.by_bytes(tied, first=first)
        assert set(ruled.loc[ruled.groupby("bytes")["predicted"].idxmin(), "algorithm"]) == {first}


def test_what_repeats_a_message_of_the_fit_is_no_test():
    """8 MB on 8 ranks in the first job: chunks of 1 MB, and 1 MiB was fitted."""
    points = held_out.all_reduces([job(200) | {"mbit": 200}])
    assert set(points["bytes"]) == {1_000_000}


def test_another_round_than_the_fastest_may_count():
    """The slowest of a job's three rounds takes 5 times as long as the others."""
    jobs = [CALIBRATION, job(100)]
    slowest = held_out.all_reduces(jobs, of=max)
    assert list(slowest["measured"]) == pytest.approx(5 * held_out.all_reduces(jobs)["measured"])
    assert list(slowest["error"]) == pytest.approx(4 * [1 / 5 - 1])


def test_the_summary_has_the_median_the_largest_and_its_sign():
    jobs = [CALIBRATION, job(100, ring=1.02, hierarchical=1.25), job(400, ring=0.96)]
    points = held_out.all_reduces(jobs)
    summary = held_out.summary(points)
    assert summary.points == 8 and summary.within == pytest.approx(6 / 8)
    assert summary.largest == pytest.approx(1 / 1.25 - 1)
    assert "hierarchical" in summary.where and "100 Mbit/s" in summary.where
    assert "the largest is -20%: hierarchical" in str(summary)
    with pytest.raises(ValueError, match="no point"):
        held_out.summary(points.iloc[:0])


def test_a_wrong_winner_is_listed_with_what_it_costs():
    right = held_out.all_reduces([CALIBRATION, job(100)])
    assert held_out.wrong_winners(right).empty
    wrong = held_out.all_reduces([CALIBRATION, job(100, hierarchical=3.0)])
    rows = held_out.wrong_winners(wrong)
    assert set(rows["predicted"]) == {"hierarchical"} and set(rows["measured"]) == {"ring"}
    assert (rows["slower"] > 1.3).all() and "2 x 4 ranks, 100 Mbit/s" in rows["where"].iloc[0]


def test_steps_are_predicted_from_computing_and_messages():
    compute = Compute(1e-3, 1e-4, 1e-9, 0.0)
    alone = [
        {"event": "steps", "images": images, "gradient_bytes": size, "world_size": 1}
        | {
            "seconds": [compute.seconds(images, size)],
            "behind": [0.25 * compute.seconds(images, size)],
        }
        for images in (32, 96)
        for size in (1e6, 8e6)
    ]
    tiers = held_out.links_of(CALIBRATION, 100)
    options = {"instances": 2, "ranks_per_instance": 2, "overlap": 0.25, "cores": 2}
    seconds = step_seconds(compute, 64, 3e6, "gloo", tiers, **options)
    record = {"event": "steps", "images": 64, "gradient_bytes": 3e6, "seconds": [9.0, seconds]}
    about = {"mbit": 100, "latency_ms": 0, "instances": 2, "ranks_per_instance": 2}
    points = held_out.steps([CALIBRATION, about | {"events": [record]}], alone, 2)
    assert points["error"].tolist() == pytest.approx([0.0], abs=1e-6)
    assert held_out.name_of(points.iloc[0]) == "a DDP step, 3 MB, 2 x 2 ranks, 100 Mbit/s"


def test_hidden_and_the_most_that_can_be():
    seconds = {
        "forward only": [1.0, 1.0],
        "computing only": [3.0, 3.0],
        "sending only": [4.0, 4.0],
        "one bucket": [7.0, 7.2],
        "DDP's buckets": [6.0, 5.0],
    }
    assert overlap.hidden(seconds) == pytest.approx({"one bucket": -0.025, "DDP's buckets": 0.375})
    assert overlap.most_hidden(seconds) == pytest.approx(0.5)
    assert overlap.most_hidden(seconds | {"sending only": [1.0, 1.0]}) == 1.0


def test_points_of_several_runs_may_be_put_together():
    """Each has rows 0, 1, 2, ..."""
    parts = [held_out.all_reduces([CALIBRATION, job(mbit, ring=1.3)]) for mbit in (100, 400)]
    both = pd.concat(parts)
    assert held_out.summary(both).points == 8
    assert held_out.wrong_winners(both).empty
