"""What a job costs on AWS: arithmetic, dates and sources, and what is not known."""

import math
from datetime import date

import pytest
from moto.utilities.utils import load_resource

import workshop
from workshop.account.prices import GRACE_SECONDS, PriceNotKnown, cost, price_table, up_to_cents
from workshop.jobs.session import MAX_RUN_SECONDS

INSTANCES = price_table()["instances"]


def test_every_instance_is_paid_for_the_whole_job():
    price = workshop.cost("ml.c5.xlarge", instance_count=2, seconds=1800)
    assert price.usd == pytest.approx(0.204)  # two half hours at 0.204 USD
    assert workshop.cost("ml.c5.xlarge", 4, 900).usd == pytest.approx(price.usd)


def test_max_run_bounds_the_cost():
    price = workshop.cost("ml.m5.large", 3, seconds=60, max_run=600)
    assert price.most_usd == pytest.approx(3 * (600 + GRACE_SECONDS) / 3600 * 0.115)
    assert workshop.cost("ml.m5.large", 3, 60).max_run == MAX_RUN_SECONDS


def test_the_text_has_amount_date_and_source():
    text = str(workshop.cost("ml.p4d.24xlarge", 2, 3600))
    assert "50.5026 USD" in text and "max_run is 1800 s" in text
    assert "price list of 2026-09-27: https://pricing.us-east-1.amazonaws.com/" in text
    assert "us-east-1" in text and text == repr(workshop.cost("ml.p4d.24xlarge", 2, 3600))


def test_a_type_without_a_price_says_why_and_where_to_look():
    with pytest.raises(PriceNotKnown, match=r"P3 is in none.*aws\.amazon\.com/sagemaker/pricing"):
        workshop.cost("ml.p3.16xlarge", 1, 60)


@pytest.mark.parametrize(
    "name, hint", [("c5.xlarge", 'mean "ml.c5.xlarge"'), ("ml.none", "no row for 'ml.none'. It")]
)
def test_a_type_that_is_not_in_the_table_is_an_error(name, hint):
    with pytest.raises(PriceNotKnown, match=hint):
        workshop.cost(name, 1, 60)


@pytest.mark.parametrize("count, seconds", [(0, 60), (-1, 60), (1, -0.5)])
def test_no_instance_and_no_time_are_errors(count, seconds):
    with pytest.raises(ValueError, match="at least 1 instance"):
        workshop.cost("ml.c5.xlarge", count, seconds)


def test_a_table_before_anything_runs():
    table = workshop.cost_table(
        [
            {"name": "1 x 4", "instance_type": "ml.c5.xlarge", "instance_count": 1, "seconds": 200},
            {"name": "2 x 2", "instance_type": "ml.c5.xlarge", "instance_count": 2, "seconds": 150},
            {"name": "no estimate", "instance_type": "ml.m5.large", "instance_count": 1},
            {"name": "no price", "instance_type": "ml.p3.2xlarge", "instance_count": 1},
        ]
    )
    assert table["name"].tolist() == ["1 x 4", "2 x 2", "no estimate", "no price"]
    assert table["USD"][0] == pytest.approx(200 / 3600 * 0.204)
    assert table["USD"][1] == pytest.approx(2 * 150 / 3600 * 0.204)
    assert table["USD per hour"][1] == pytest.approx(0.408)
    assert math.isnan(table["USD"][2]) and table["USD at most"][2] > 0
    assert math.isnan(table["USD at most"][3])
    assert table["price as of"].tolist()[:3] == ["2026-09-27"] * 3
    assert table["price as of"][3].startswith("not known: P3 is in none")


def test_each_row_has_a_dated_price_or_a_reason():
    for name, row in INSTANCES.items():
        assert ("usd_per_hour" in row) != ("unknown" in row), name
        if "usd_per_hour" in row:
            source = price_table()["sources"][row["source"]]
            assert source["address"].startswith("https://") and source["how"]
            assert isinstance(row["price_date"], date) and row["price_date"] <= source["read"]


def test_what_is_known_beside_the_price_is_what_ec2_says():
    ec2, compared = load_resource("ec2/resources/instance_types.json"), 0
    for name, row in INSTANCES.items():
        if (answer := ec2.get(name.removeprefix("ml."))) is None:
            continue
        compared += 1
        gpus = answer.get("GpuInfo", {}).get("Gpus", [])
        assert row["vcpus"] == answer["VCpuInfo"]["DefaultVCpus"], name
        assert row["gpus"] == sum(gpu["Count"] for gpu in gpus), name
    assert compared >= 11  # all but P3


def test_a_limit_is_rounded_up_and_never_down():
    assert [up_to_cents(usd) for usd in (0.0408, 0.04, 3 * 0.1, 0)] == [0.05, 0.04, 0.3, 0]
    assert "At most 0.05 USD" in str(cost("ml.c5.xlarge", 1, 300, max_run=600))
