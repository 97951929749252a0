"""Lesson 12, executed with smaller numbers; its recorded results are what is tested."""

import numpy as np
import pytest

FEWER = {"DDP": 1, "fp16": 2, "accumulation": 4, "local SGD": 16, "DiLoCo": 16}


def trained(results, link="wide"):
    runs = [event for event in results["events"] if event["event"] == "trained"]
    return {run["method"]: run for run in runs if run["link"] == link}


def test_all_ways_learn_and_end_with_one_model(results):
    runs = trained(results)
    assert {*FEWER, "PowerSGD", "top-k", "top-k without memory", "alone"} < set(runs)
    for method, run in runs.items():
        assert run["losses"][-1] < 0.7 * run["losses"][0], method
        assert run["models"] == (2 if method == "alone" else 1), method


def test_a_training_is_the_same_on_another_link(results):
    assert results["repeated"] == {"top-k": 1, "DiLoCo": 1}  # sent each step, and each 16th
    fast, slow = trained(results), trained(results, "20mbit")
    assert set(slow) == {"top-k", "DiLoCo"}
    assert all(slow[way]["losses"] == fast[way]["losses"] for way in slow)


@pytest.mark.shaping
def test_the_bytes_are_those_that_were_counted(results):
    """On two ranks a ring sends the tensor once; packets have headers."""
    assert not results["recorded"]
    model = next(event for event in results["events"] if event["event"] == "model")
    sent = trained(results)["DDP"]["sent_bytes"][-1] / trained(results)["DDP"]["steps"][-1]
    assert 1 < sent / model["gradient_bytes"] < 1.05
    for way, fewer in FEWER.items():
        assert results["fewer_bytes"][way] == pytest.approx(fewer, rel=0.05), way
    # Places and values of 1 %, on top of it the headers of short messages.
    assert 35 < results["fewer_bytes"]["top-k"] < 50
    assert 8 < results["fewer_bytes"]["PowerSGD"] < 16


@pytest.mark.shaping
def test_bytes_decide_on_a_slow_link(results):
    """0.47 MB in every step at 2.5 MB/s, or hardly any."""
    seconds = results["seconds_to_goal"]["20mbit"]
    assert seconds["DDP"] == max(seconds.values())
    assert seconds["alone"] < 0.5 * seconds["DDP"]
    assert results["against_alone"]["20 Mbit/s"]["DDP"] != "faster"
    timed = {
        event["method"]: min(event["seconds"])
        for event in results["events"]
        if event["event"] == "timed" and event["link"] == "20mbit"
    }
    for way, fewer in FEWER.items():
        assert timed[way] > 0.8 * 0.47 / 2.5 / fewer, way


def test_top_k_needs_its_memory_and_the_script_ends_with_one_model(results):
    assert min(results["without_memory"]) > -0.1  # 128 steps are too few for more
    ends = results["ends"]
    assert all(np.less(ends["DDP"], ends["alone"]))
    assert (results["ranks"], results["syncs"]) == (2, 11)
