"""The benchmarks of links say what was measured, beside what the cost model predicts."""

import json

import pytest

from tools import bench
from workshop.measure import held_out


def line(event, **fields):
    """A record as a rank prints it."""
    return json.dumps({"event": event, **fields})


def lines_of_a_job(requests):
    """A `run` whose lines were made by hand: links of 200 Mbit/s, exactly. requests: grow."""

    def run(script, **request):
        requests.append(request)
        lines = ["no record", '{"event": broken']
        place = {"instances": request["instances"], "ranks_per_instance": request["processes"]}
        lines.append(line("placement", **place))
        for tier, alpha, rate in [("intra_node", 1e-4, 8e9), ("inter_node", 1e-3, 200e6)]:
            for pairs in (1, 4):
                for size in (2**17, 2**18, 2**20):
                    seconds = [alpha + pairs * 8 * size / rate] * 3
                    lines.append(line("link", tier=tier, pairs=pairs, bytes=size, seconds=seconds))
        for algorithm, seconds in [("gloo", 0.3), ("hierarchical", 0.2)]:
            measured = [seconds, 9.0, seconds]
            lines.append(line("all_reduce", algorithm=algorithm, bytes=4_000_000, seconds=measured))
        return lines

    return run


def test_a_jobs_lines_become_points(capsys):
    requests = []
    described = (200, 1, 2, 4, "gloo,hierarchical", "4000000")
    job = bench.all_reduces(lines_of_a_job(requests), described, 5)
    (request,) = requests
    assert request["links"] == "200mbit 1ms" and request["blocks"] == 5
    assert request["instances"] == 2 and request["processes"] == 4
    assert {event["event"] for event in job["events"]} == {"placement", "link", "all_reduce"}
    points = held_out.all_reduces([job | {"latency_ms": 0}])
    assert points["measured"].tolist() == [0.3, 0.2], "the least"
    gloo = points["predicted"].iloc[0]
    assert gloo == pytest.approx(14 * (1e-3 + 8 * 500_000 / 200e6), rel=0.01)
    bench.report(points)
    printed = capsys.readouterr().out
    assert "gloo, 4 MB, 2 x 4 ranks, 200 Mbit/s" in printed
    assert "2 held-out points: median error" in printed and "wrong winner" not in printed
    points["measured"] = [0.1, 0.2]
    bench.report(points)
    printed = capsys.readouterr().out
    assert "the model says hierarchical, gloo was faster, 2.00 times" in printed


def test_a_ratio_is_taken_within_a_block():
    seconds = {"gloo": [2.0, 4.0, 90.0], "hierarchical": [1.0, 2.0, 30.0]}
    assert bench.ratio(seconds, "gloo", "hierarchical") == 2.0
