"""Jobs on narrow links: the rate holds in both directions, and what holds is said."""

import json

import pytest
from bandwidth_helpers import flooded, host_network, links_lines, seconds_of
from emulator_harness import SCRIPTS
from nobody_helpers import only_root, run_as_nobody

from local_sagemaker.cluster import probe

MBIT = 1e6 / 8  # bytes a second
BYTES = 2 << 20
SLACK = 0.9  # the bucket lets a first few packets pass at once
LOOSELY = 8  # a busy machine is late; a link that does not hold its rate is later

pytestmark = pytest.mark.shaping


def in_time(spent: float, size: int, mbit: float) -> bool:
    expected = size / (mbit * MBIT)
    return expected * SLACK <= spent <= expected * LOOSELY


def test_each_direction_has_the_rate_and_peers_share_it(emulator):
    """out, in: to and from another. to all, from all: one sender to two receivers, and back."""
    narrow_job = flooded(emulator, "narrow", "50mbit", BYTES, 3)
    result = seconds_of(narrow_job)
    for way, size in {
        "out": BYTES,
        "in": BYTES,
        "from all": 2 * BYTES,
        "to all": 2 * BYTES,
    }.items():
        assert in_time(result[way], size, 50), (way, result)
    one_after_the_other = max(2 * BYTES / (50 * MBIT), result["out"] + result["in"])
    assert result["both"] < one_after_the_other * SLACK, result
    # A small message doesn't wait for a stream: a queue that TCP may fill would hold all of it,
    # 0.34 s at this rate.
    assert result["beside"] < 0.2
    lines = ["links: 50 Mbit/s between instances, asked for by the job"]
    assert links_lines(narrow_job) == lines


def test_without_the_variable_links_are_wide_and_nothing_is_said(emulator):
    wide_job = flooded(emulator, "wide", None, BYTES, 3)
    spent = seconds_of(wide_job)
    narrow = SLACK * BYTES / (50 * MBIT)  # what the narrow job needs at least
    assert max(spent["out"], spent["in"]) < narrow, spent
    assert max(spent["from all"], spent["to all"]) < 2 * narrow, spent
    assert links_lines(wide_job) == []


def test_latency_is_given_or_it_is_said_that_it_is_not(emulator):
    job = flooded(emulator, "late", "50mbit 20ms", 65536, 2)
    lines = links_lines(job)
    if probe.shaping_unavailable_reason(latency=True) is None:
        assert lines == ["links: 50 Mbit/s and 20 ms between instances, asked for by the job"]
        assert seconds_of(job)["beside"] >= 0.04  # there and back
    else:
        assert lines[0] == "links: 50 Mbit/s between instances, asked for by the job"
        assert lines[1].startswith("links are not delayed: this kernel refuses netem (")


@only_root
def test_an_ordinary_user_gets_narrow_links_too(tmp_path):
    """The supervisor as another user."""
    before = host_network()
    done = run_as_nobody(SUPERVISOR, tmp_path, str(BYTES), files=[SCRIPTS / "flood.py"])
    assert done.returncode == 0, done.stdout + done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    lines = [line for event in events if event["event"] == "log" for line in event["lines"]]
    assert "[local] links: 50 Mbit/s between instances, asked for by the job" in lines, lines
    (result,) = [line for line in lines if line.startswith("SECONDS ")]
    assert in_time(json.loads(result.removeprefix("SECONDS "))["out"], BYTES, 50), result
    assert host_network() == before


SUPERVISOR = """
import pickle, subprocess, tempfile
from pathlib import Path
from local_sagemaker.cluster.bandwidth import Bandwidth
from local_sagemaker.cluster.spec import NAMESPACES, ClusterSpec, Connectivity, Host
with tempfile.TemporaryDirectory() as folder:
    hosts = [Host(f"algo-{n}", f"{folder}/algo-{n}", {"PATH": os.environ["PATH"]}) for n in (1, 2)]
    for host in hosts:
        (host.path / "ml").mkdir(parents=True)
    command = [sys.executable, sys.argv[1] + "/flood.py", sys.argv[2], "algo-1", "algo-2"]
    reach = Connectivity(internet=False, bandwidth=Bandwidth(50e6))
    spec = ClusterSpec("nobodys", NAMESPACES, hosts, command, 9, 1.0, reach)
    Path(folder, "spec.pickle").write_bytes(pickle.dumps(spec))
    module = "local_sagemaker.cluster.supervisor"
    supervisor = [sys.executable, "-m", module, folder + "/spec.pickle"]
    sys.exit(subprocess.Popen(supervisor, stdin=subprocess.PIPE).wait())  # its end ends the job
"""
