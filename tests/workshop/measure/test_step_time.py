"""What a step takes by the model, in Python and in the calculator's JavaScript."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import shutil
import subprocess

import pytest

from workshop.measure.all_reduces import ALGORITHMS, PLACED
from workshop.measure.alpha_beta import Link, SharedLinks, TwoTiers, estimated_seconds
from workshop.measure.step_time import Compute, at_bandwidth, step_seconds
from workshop.plots import interactive

COMPUTE = Compute(fixed=1e-3, per_image=1e-4, per_byte=1e-9, per_image_byte=0.0)
INSIDE = SharedLinks(Link(2e-5, 1e-9), Link(4e-5, 3e-9), 4)
ACROSS = SharedLinks(Link(5e-5, 4e-8), Link(9e-5, 1.6e-7), 4)
TIERS = TwoTiers(INSIDE, ACROSS)
PLACE = {"instances": 2, "ranks_per_instance": 2}
MODEL_IN_NODE = """
require(process.argv[1]);
const configurations = JSON.parse(require("fs").readFileSync(0, "utf8"));
const { model } = workshopPieces;
console.log(JSON.stringify(configurations.map(({ rate, ...one }) =>
  model.step({ ...one, tiers: model.atBandwidth(one.tiers, rate) }).seconds)));
"""


def steps(images, gradient_bytes, seconds, world_size=1):
    about = {"event": "steps", "images": images, "gradient_bytes": gradient_bytes}
    return about | {"world_size": world_size, "seconds": [seconds, 2 * seconds]}


def test_a_step_is_its_computing_and_what_is_left_of_the_all_reduce():
    computing = COMPUTE.seconds(64, 1e6)
    assert computing == pytest.approx(1e-3 + 64e-4 + 1e-3)
    travelling = estimated_seconds("gloo", 1e6, 2, TIERS, 2)
    one = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, **PLACE)
    assert one == pytest.approx(computing + travelling)
    half = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, overlap=0.5, **PLACE)
    assert half == pytest.approx(one - computing / 2)
    shared = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, cores=2, **PLACE)
    assert shared == pytest.approx(one + computing), "4 ranks on 2 cores compute half as fast"
    alone = {"instances": 1, "ranks_per_instance": 1}
    assert step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, **alone) == pytest.approx(computing)


def test_an_all_reduce_that_is_hidden_costs_nothing():
    fast = at_bandwidth(TwoTiers(INSIDE, ACROSS), 1e12)
    assert step_seconds(COMPUTE, 64, 1e3, "ring", fast, overlap=1, **PLACE) == COMPUTE.seconds(
        64, 1e3
    )


def test_computing_from_two_sizes_and_two_batches():
    records = [steps(i, n, COMPUTE.seconds(i, n)) for i in (32, 128) for n in (1e6, 8e6)]
    found = Compute.from_measurements([{"event": "start"}, *records])
    for images, n_bytes in ((1, 1e6), (64, 3e6), (500, 1e7)):
        assert found.seconds(images, n_bytes) == pytest.approx(COMPUTE.seconds(images, n_bytes))
    with pytest.raises(ValueError, match="1 records of 1 sizes and 1 batches: give"):
        Compute.from_measurements(records[:1])
    with pytest.raises(ValueError, match="several ranks"):
        Compute.from_measurements([one | {"world_size": 2} for one in records])


def test_another_bandwidth_keeps_alpha_and_shares_the_link():
    found = at_bandwidth(TIERS, 80e6).across
    assert found.alone == Link(5e-5, 1e-7) and found.busy == Link(9e-5, 4e-7)
    assert at_bandwidth(TIERS, None) is TIERS


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"overlap": 1.5}, "overlap is 1.5"),
        ({"cores": 0}, "0 cores"),
        ({"instances": 0}, "instances is 0"),
    ],
)
def test_bad_input_is_said(wrong, said):
    with pytest.raises(ValueError, match=said):
        step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, **PLACE | wrong)


@pytest.mark.parametrize("rate", [0, -1, math.nan])
def test_a_bad_rate_is_said(rate):
    with pytest.raises(ValueError, match="give a rate above 0"):
        at_bandwidth(TIERS, rate)
    with pytest.raises(ValueError, match="No link across instances was measured"):
        at_bandwidth(TwoTiers(INSIDE, None), 1e6)


def configurations(count):
    """Random ones, as the calculator takes them, always the same."""
    chance = random.Random(16)

    def link():
        return Link(chance.uniform(0, 1e-3), 10 ** chance.uniform(-11, -6))

    def shared():
        at_once = chance.randint(1, 8)
        return SharedLinks(link(), link(), at_once)

    for number in range(count):
        names = (*ALGORITHMS, *PLACED)
        coefficients = [10 ** chance.uniform(-6, -2), 10 ** chance.uniform(-7, -3)]
        coefficients += [10 ** chance.uniform(-11, -8), 10 ** chance.uniform(-13, -10)]
        yield {
            "algorithm": names[number % len(names)],
            "bytes": chance.choice([0, 1, 12345, 10 ** chance.uniform(0, 8.5)]),
            "images": chance.randint(1, 512),
            "instances": chance.randint(1, 6),
            "each": chance.randint(1, 8),
            "tiers": TwoTiers(shared(), shared()),
            "compute": Compute(*coefficients),
            "rate": chance.choice([None, 10 ** chance.uniform(6, 11)]),
            "overlap": chance.choice([0, 1, chance.random()]),
            "cores": chance.choice([None, 1, 2, 96]),
        }


def test_the_calculators_answers_are_the_models():
    """A thousand random configurations, to one part in 10^9."""
    if not shutil.which("node"):
        pytest.skip("node is missing, which runs the calculator's program")
    asked = list(configurations(1000))
    text = json.dumps(asked, default=dataclasses.asdict)
    command = ["node", "-e", MODEL_IN_NODE, str(interactive.HERE / "interactive.js")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    expected = [
        step_seconds(
            one["compute"],
            one["images"],
            one["bytes"],
            one["algorithm"],
            at_bandwidth(one["tiers"], one["rate"]),
            instances=one["instances"],
            ranks_per_instance=one["each"],
            overlap=one["overlap"],
            cores=one["cores"] or math.inf,
        )
        for one in asked
    ]
    assert len(found) == 1000
    assert found == pytest.approx(expected, rel=1e-9, abs=0)
