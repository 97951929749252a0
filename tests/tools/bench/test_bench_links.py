"""The benchmarks of links say what was measured, beside bounds that come from the cost model."""

import json
import subprocess
import sys

import pytest

from tools.bench import links
from workshop.measure import alpha_beta

PLACE = {"instances": 2, "ranks_per_instance": 4}


def line(event, **fields):
    """A record as a rank prints it."""
    return json.dumps({"event": event, **fields})


class Jobs:
    """Answers a job with lines that were made by hand: links of 200 Mbit/s, exactly."""

    def run(self, script, **request):
        self.request = request
        lines = ["no record", '{"event": broken']
        for tier, alpha, rate in [("intra_node", 1e-4, 8e9), ("inter_node", 1e-3, 200e6)]:
            for pairs in (1, 4):
                for size in (8, 2**16, 2**20):
                    seconds = [alpha + pairs * 8 * size / rate] * 3
                    lines.append(line("link", tier=tier, pairs=pairs, bytes=size, seconds=seconds))
        for algorithm, seconds in [("gloo", 0.7), ("hierarchical", 0.4)]:
            measured = [seconds, 9.0, seconds]
            lines.append(
                line("all_reduce", algorithm=algorithm, bytes=links.LARGE, seconds=measured)
            )
        return lines


def test_a_jobs_lines_become_measured_predicted_and_bound():
    jobs = Jobs()
    gloo, hierarchical = links.measure(jobs, 200, 5)
    assert jobs.request["links"] == "200mbit" and jobs.request["blocks"] == 5
    assert jobs.request["instances"] == 2 and jobs.request["processes"] == 4
    assert gloo["measured"] == 0.7 and hierarchical["measured"] == 0.4, "medians"
    assert gloo["bound"] == pytest.approx(14 * 2**20 * 8 / 200e6)
    assert gloo["predicted"] == pytest.approx(gloo["bound"] + 14 * 1e-3)
    assert hierarchical["bound"] < hierarchical["predicted"] < gloo["predicted"]


def test_the_ratios_stand_beside_their_bounds(capsys):
    rows = []
    for algorithm, measured in [
        ("gloo", 0.6),
        ("hierarchical", 0.4),
        ("ring", 0.6),
        ("interleaved_ring", 2),
    ]:
        bound = alpha_beta.bound(algorithm, links.LARGE, bits_per_second=200e6, **PLACE)
        row = {"algorithm": algorithm, "bytes": links.LARGE, "mbit": 200, "bound": bound}
        rows.append(row | {"measured": measured, "predicted": 1.1 * measured})
    links.print_ratios(rows)
    lines = capsys.readouterr().out.splitlines()
    first, second = (line for line in lines if "against" in line)
    assert [cell.strip() for cell in first.split("│")[1:-1]] == [
        "gloo against hierarchical",
        "600",
        "400",
        "1.50",
        "1.75",
    ]
    assert "3.33" in second and "4.00" in second
    links.print_predictions(rows)
    assert "4 points: median error 10%" in capsys.readouterr().out


def test_an_unknown_benchmark_is_wrong_use():
    command = [sys.executable, "-m", "tools.bench", "linkz"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "no benchmark linkz; there are overhead, links, steps, serving" in done.stderr
