"""Scaling: what is made of the records of scripts/demos/measure_scaling.py."""

import pytest

from workshop.measure.scaling import Estimate, Scaling, share_at, table

ABOUT = {"event": "scaling", "library": "torch", "scaling": "strong", "world_size": 2}
ABOUT |= {"instances": 1, "global_batch_size": 512, "local_batch_size": 256}
ABOUT |= {"gradient_bytes": 400, "steps": 2}
# Rank 1 is late in the first step, rank 0 in the second: each step waits for the slower.
ROUND = {"event": "round", "alone": 0.2, "compute": [[0.1, 0.14], [0.12, 0.1]]}
ROUND |= {"step": [0.16, 0.158], "again": [0.16, 0.16], "exchange": [0.023, 0.02]}


def test_a_step_is_compute_and_wait_and_exposed_communication():
    scaling = Scaling.from_records([ABOUT, {"event": "other"}, ROUND])
    parts = scaling.parts
    assert parts.to_dict() == pytest.approx(
        {"compute": 115, "wait": 15, "exposed communication": 30}
    )
    assert parts.sum() == pytest.approx(160)
    assert scaling.speed_up.median == pytest.approx(0.2 / 0.16)
    assert scaling.ceiling.median == pytest.approx(0.2 / 0.115)
    assert scaling.share.median == pytest.approx(0.115 / 0.16)
    assert scaling.r.median == pytest.approx(0.023 / 0.115)
    assert scaling.noise.median == 1


def test_in_weak_scaling_all_ranks_do_more_work_than_one():
    scaling = Scaling.from_records([ABOUT | {"scaling": "weak"}, ROUND])
    assert scaling.speed_up.median == pytest.approx(2 * 0.2 / 0.16)


def test_ratios_are_taken_within_a_round():
    """In the second round everything took twice as long: no ratio changes."""
    slow = {key: value for key, value in ROUND.items()} | {"alone": 0.4, "step": [0.32, 0.3]}
    slow |= {"compute": [[0.2, 0.28], [0.24, 0.2]], "again": [0.32, 0.32], "exchange": [0.046]}
    scaling = Scaling.from_records([ABOUT, ROUND, slow])
    assert scaling.speed_up.low == pytest.approx(scaling.speed_up.high)
    assert scaling.share.low == pytest.approx(scaling.share.high)
    assert scaling.noise.low == pytest.approx(1 / scaling.noise.high)
    assert scaling.speed_up.text == "1.2 (1.2 to 1.2)"


def test_several_batches_are_measured_one_after_the_other():
    short = ABOUT | {"global_batch_size": 16}
    scalings = Scaling.by_batch([short, ROUND, ABOUT, ROUND | {"alone": 0.4}, ROUND])
    assert {size: len(scaling.rounds) for size, scaling in scalings.items()} == {16: 1, 512: 2}
    assert scalings[512].rounds["alone"].tolist() == [0.4, 0.2]


def test_records_that_are_no_measurement_are_refused():
    for records in ([ROUND], [ABOUT], [ABOUT, ABOUT, ROUND], []):
        with pytest.raises(ValueError, match="run to its end"):
            Scaling.from_records(records)


def test_the_table_has_a_row_for_each_configuration():
    scaling = Scaling.from_records([ABOUT, ROUND])
    row = table({"two ranks": scaling}).loc["two ranks"]
    assert row["compute, ms"] == 115 and row["speed-up"] == "1.25 (1.25 to 1.25)"
    assert row["exchange alone, ms"] == 23 and row["r"] == "0.20 (0.20 to 0.20)"
    assert row["noise (A/A), median round"] == "a factor of 1.00"
    assert Estimate(**scaling.record()["share"]).fixed == row["share of the ceiling"]


def test_half_of_the_ceiling_is_left_where_an_exchange_takes_as_long_as_computing():
    assert share_at(0) == 1 and share_at(1) == 0.5
    assert share_at(0.5, hidden=0.6) == 1
    assert share_at(1.6, hidden=0.6) == pytest.approx(0.5)
