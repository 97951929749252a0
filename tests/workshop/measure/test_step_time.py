"""What a step takes by the model."""

import pytest

from workshop.measure.alpha_beta import HierarchicalLinks, Link, SharedLinks, estimated_seconds
from workshop.measure.step_time import Compute, step_seconds

COMPUTE = Compute(fixed=1e-3, per_image=1e-4, per_byte=1e-9, per_image_byte=0.0)
INTRA_NODE = SharedLinks(Link(2e-5, 1e-9), Link(4e-5, 3e-9), 4)
INTER_NODE = SharedLinks(Link(5e-5, 4e-8), Link(9e-5, 1.6e-7), 4)
TIERS = HierarchicalLinks(INTRA_NODE, INTER_NODE)
PLACE = {"instances": 2, "ranks_per_instance": 2}


def steps(images, gradient_bytes, seconds, world_size=1):
    about = {"event": "steps", "images": images, "gradient_bytes": gradient_bytes}
    return about | {"world_size": world_size, "seconds": [seconds, 2 * seconds]}


def test_a_step_is_its_computing_and_what_is_left_of_the_all_reduce():
    computing = COMPUTE.seconds(64, 1e6)
    assert computing == pytest.approx(1e-3 + 64e-4 + 1e-3)
    travelling = estimated_seconds("gloo", 1e6, 2, TIERS, 2)
    step = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, **PLACE)
    assert step == pytest.approx(computing + travelling)
    half = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, overlap=0.5, **PLACE)
    assert half == pytest.approx(step - computing / 2)
    shared = step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, cores=2, **PLACE)
    assert shared == pytest.approx(step + computing), "4 ranks on 2 cores compute half as fast"
    alone = {"instances": 1, "ranks_per_instance": 1}
    assert step_seconds(COMPUTE, 64, 1e6, "gloo", TIERS, **alone) == pytest.approx(computing)


def test_an_all_reduce_that_is_hidden_costs_nothing():
    fast = HierarchicalLinks(INTRA_NODE, SharedLinks(Link(5e-5, 1e-12), Link(9e-5, 1e-12), 4))
    assert step_seconds(COMPUTE, 64, 1e3, "ring", fast, overlap=1, **PLACE) == COMPUTE.seconds(
        64, 1e3
    )


def test_computing_from_two_sizes_and_two_batches():
    records = [steps(i, n, COMPUTE.seconds(i, n)) for i in (32, 128) for n in (1e6, 8e6)]
    compute = Compute.from_measurements([{"event": "start"}, *records])
    for images, n_bytes in ((1, 1e6), (64, 3e6), (500, 1e7)):
        assert compute.seconds(images, n_bytes) == pytest.approx(COMPUTE.seconds(images, n_bytes))
    with pytest.raises(ValueError, match="1 records of 1 sizes and 1 batches: give"):
        Compute.from_measurements(records[:1])
    with pytest.raises(ValueError, match="several ranks"):
        Compute.from_measurements([record | {"world_size": 2} for record in records])
