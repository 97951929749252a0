"""The table of configurations: its arithmetic on known records."""

import json
import math
from datetime import datetime, timedelta

import pytest

import workshop
from workshop.account.prices import cost
from workshop.jobs.follow import JobResult
from workshop.jobs.logs import parse
from workshop.launch.mpirun import CompletedRun
from workshop.launch.processes import Line

BEGAN = datetime(2026, 1, 1)


def records(world_size, step_seconds, batch=64):
    """What a script prints: its start, and an epoch for each of `step_seconds`."""
    start = {"event": "start", "world_size": world_size, "global_batch_size": batch}
    epochs = [
        {"event": "epoch", "step_seconds": seconds, "train_loss": 0.1} for seconds in step_seconds
    ]
    return [json.dumps(record) for record in (start, *epochs)]


def job(instances, world_size, step_seconds, kind="ml.c5.xlarge", billable=30, **options):
    description = {
        "TrainingJobStatus": "Completed",
        "ResourceConfig": {"InstanceCount": instances, "InstanceType": kind},
        "BillableTimeInSeconds": billable,
        "SecondaryStatusTransitions": [
            {"Status": "Training", "StartTime": BEGAN, "EndTime": BEGAN + timedelta(seconds=9)}
        ],
    }
    texts = records(world_size, step_seconds, **options)
    return JobResult("a-job", description, [parse("algo-1", text) for text in texts])


def here(ranks, step_seconds):
    return CompletedRun(ranks, 5.0, [Line(0, text) for text in records(ranks, step_seconds)])


def test_a_row_for_each_configuration_in_the_order_given():
    table = workshop.compare({"1 x 1": job(1, 1, [0.04]), "2 x 2": job(2, 4, [0.016])})
    assert table.index.tolist() == ["1 x 1", "2 x 2"] and table.index.name == "configuration"
    two = table.loc["2 x 2"]
    assert two[["instances", "processes", "world_size", "global_batch_size"]].tolist() == [
        *(2, 2, 4),
        64,
    ]
    assert two["step ms"] == 16 and two["samples/s"] == 64 / 0.016
    assert table["speed-up"].tolist() == [1, 2.5]


def test_a_busy_epoch_does_not_decide():
    calm, disturbed = [0.010, 0.011, 0.012], [0.010, 0.011, 0.012, 0.011, 0.9]
    table = workshop.compare({"calm": job(1, 1, calm), "disturbed": job(1, 1, disturbed)})
    assert table["step ms"].tolist() == [11, 11]


def test_every_instance_is_billed():
    table = workshop.compare({"1": job(1, 1, [0.1]), "3": job(3, 3, [0.1], billable=40)})
    assert table["billable s"].tolist() == [30, 40]
    assert table["USD"]["3"] == pytest.approx(cost("ml.c5.xlarge", 3, 40).usd, abs=1e-5)
    assert table["USD"]["3"] > 3 * table["USD"]["1"]
    assert table.attrs["price_date"] == str(cost("ml.c5.xlarge", 1, 1).price_date)


def test_what_is_no_job_has_no_bill_and_an_unknown_price_no_amount():
    table = workshop.compare({"here": here(2, [0.02]), "old": job(1, 2, [0.01], "ml.p3.2xlarge")})
    assert table.loc["here", ["instances", "processes", "world_size"]].tolist() == [1, 2, 2]
    assert math.isnan(table["billable s"]["here"]) and math.isnan(table["USD"]["here"])
    assert table["billable s"]["old"] == 30 and math.isnan(table["USD"]["old"])
    assert table.attrs["price_date"] is None


def test_nothing_to_compare_is_said():
    with pytest.raises(ValueError, match="at least one result"):
        workshop.compare({})
    with pytest.raises(ValueError, match=r"one-step has no timed step.*more steps"):
        workshop.compare({"one-step": job(1, 1, [None])})
