"""Metric definitions: what a job's log lines become."""

import time

import pytest
from emulator_harness import request

from local_sagemaker.training import job_log as metrics


def body(*definitions: tuple[str, str]) -> dict:
    item = request("a-job")
    rows = [{"Name": name, "Regex": regex} for name, regex in definitions]
    item["AlgorithmSpecification"]["MetricDefinitions"] = rows
    return item


def values(regex: str, *lines: str) -> list[float]:
    """Every value found, in order."""
    reader = metrics.Metrics(body(("m", regex)))
    for line in lines:
        reader.read(line)
    return [datum["Value"] for datum in reader.unsent]


def test_the_last_value_is_the_final_one():
    reader = metrics.Metrics(body(("loss", "loss: ([0-9.]+)"), ("step", r"step=(\d+)")))
    for line in ("step=1 loss: 0.5", "nothing", "step=2 loss: 0.25 loss: 0.125"):
        reader.read(line)
    assert {name: value for name, (value, _) in reader.values.items()} == {"loss": 0.125, "step": 2}
    assert len(reader.unsent) == 5


@pytest.mark.parametrize(
    ("regex", "line", "result"),
    [
        (r"loss=(-?[0-9.e-]+)", "loss=-1.5e-3", [-0.0015]),
        (r"loss=([0-9.]+)", '[1,mpirank:0,algo-1]<stdout>: {"x": 1} loss=0.5', [0.5]),
        (r'"loss": ([0-9.]+)', '{"step": 1, "loss": 0.5}', [0.5]),
        (r"(loss)=([0-9.]+)", "loss=0.5", []),  # the first group is the value, as on AWS
        (r"loss=(\S+)", "loss=nan", []),
        (r"loss=(\S+)", "loss=-inf", []),
        (r"loss=(\S*)", "loss=", []),
        (r"loss(=[0-9]+)?", "loss", []),
    ],
)
def test_values(regex, line, result):
    assert values(regex, line) == result


def test_an_expression_that_never_ends_is_given_up():
    """It backtracks for years over one line; the job, and every other request, goes on."""
    output = []
    forever = body(("m", "loss: ((?:[0-9]|[0-9][0-9])+)$"), ("good", "loss: ([0-9]+)"))
    reader = metrics.Metrics(forever, log=output.append)
    begun = time.monotonic()
    for _ in range(3):
        reader.read("loss: " + "1" * 60 + "x")
    assert time.monotonic() - begun < 60
    assert len(output) == 1 and "metric m: its regular expression took over" in output[0]
    assert set(reader.values) == {"good"}
