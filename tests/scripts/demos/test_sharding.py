"""measure_sharding.py: what each rank holds and sends, in four ways that train one model."""

import os

import pytest
from script_harness import DEMOS, finish, free_port, mpirun

WAYS = ("ddp", "zero1", "zero2", "zero3")
SMALL = 4096  # bytes: padding of parts, steps that the optimizer counts, a loss


@pytest.fixture(scope="module")
def records():
    flags = ["--ways", ",".join(WAYS), "--width", "64", "--blocks", "2", "--rounds", "1"]
    command = [*mpirun(2), DEMOS / "measure_sharding.py", *flags]
    done = finish(command, check=True, timeout=240, env=os.environ | {"MASTER_PORT": free_port()})
    return {record["way"]: record for record in done.events("sharding")}


def test_all_ways_train_one_model(records):
    assert set(records) == set(WAYS)
    assert len({record["weights_sha256"] for record in records.values()}) == 1
    assert len({record["loss"] for record in records.values()}) == 1


@pytest.mark.parametrize(
    "way, weights, gradients, optimizer",
    # In models. AdamW holds two numbers for each weight; Zero1 a part of the gradients besides.
    [("ddp", 1, 1, 2), ("zero1", 1, 1.5, 1), ("zero2", 0.5, 0.5, 1), ("zero3", 0.5, 0.5, 1)],
)
def test_a_rank_holds_what_was_counted(records, way, weights, gradients, optimizer):
    record = records[way]
    model = record["model_bytes"]
    assert record["weights"] == pytest.approx(weights * model, abs=SMALL)
    assert record["gradients"] == pytest.approx(gradients * model, abs=SMALL)
    assert record["optimizer"] == pytest.approx(optimizer * model, abs=SMALL)
    counted = record["weights"] + record["gradients"] + record["optimizer"]
    assert record["held"] == pytest.approx(counted, abs=SMALL), "something else is held, too"
    assert record["peak"] > record["held"]


def test_zero3_sends_three_models_where_the_others_send_two(records):
    """An all-reduce of a model counts as two: it is a reduce-scatter and an all-gather."""
    passes = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}
    for way, models in zip(WAYS, (2, 2, 2, 3), strict=True):
        sent = records[way]["sent"]
        total = sum(passes[collective] * n_bytes for collective, n_bytes in sent.items())
        assert total == pytest.approx(models * records[way]["model_bytes"], abs=3 * SMALL), way


def test_an_unknown_way_is_refused(run):
    done = run(*mpirun(1), DEMOS / "measure_sharding.py", "--ways", "zero4", check=False)
    assert done.code == 2 and "there is no 'zero4'" in done.stderr
