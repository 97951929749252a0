"""train_torch_links.py and measure_all_reduce.py, on ranks that believe to be two instances."""

import itertools
import re
import socket
import sys
from pathlib import Path

import pytest
from script_harness import DEMOS, HERE, TEN_STEPS, check_equals, mpirun

TOLERANCE = 3e-7  # see test_train_torch.py
needs_mpirun = pytest.mark.skipif(not Path(mpirun(4)[0]).exists(), reason="no mpirun")


@pytest.fixture
def as_two_instances(run):
    """Run a command on ranks that believe to be on two instances; `ranks` on each."""

    def go(*command, ranks, **options):
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = str(server.getsockname()[1])
        variables = {"LOCAL_WORLD_SIZE": str(ranks), "MASTER_PORT": port, "OMP_NUM_THREADS": "1"}
        return run(*mpirun(2 * ranks), *command, **variables, **options)

    return go


@needs_mpirun
def test_two_tier_trains_what_one_process_trains(as_two_instances, ten_steps, tmp_path):
    flags = ["--all-reduce", "two_tier", "--dump-weights", tmp_path]
    done = as_two_instances(DEMOS / "train_torch_links.py", *TEN_STEPS, *flags, ranks=1)
    check_equals(ten_steps, tmp_path, 2, TOLERANCE)
    assert len(set(done.hashes.values())) == 1 and len(done.hashes) == 2
    assert done.events("epoch")[0]["steps"] == 10


@needs_mpirun
def test_measures_links_and_all_reduces(as_two_instances):
    names = "gloo,naive,tree,ring,blind_ring,two_tier,herring"
    flags = ["--algorithms", names, "--bytes", "4000", "--link-bytes", "8,4000", "--blocks", "3"]
    done = as_two_instances(DEMOS / "measure_all_reduce.py", *flags, ranks=2)
    assert done.events("places") == [{"event": "places", "instances": 2, "ranks_per_instance": 2}]
    links = done.events("link")
    assert [(one["tier"], one["pairs"], one["bytes"]) for one in links] == list(
        itertools.product(("inside", "across"), (1, 2), (8, 4000))
    )
    measured = done.events("all_reduce")
    assert [(one["algorithm"], one["bytes"]) for one in measured] == [
        (name, 4000) for name in names.split(",")
    ]
    for one in links + measured:
        assert len(one["seconds"]) == 3 and min(one["seconds"]) > 0


@needs_mpirun
def test_shows_how_buckets_overlap_with_computing(as_two_instances):
    flags = ["--blocks", "1", "--local-batch-size", "16"]
    done = as_two_instances(DEMOS / "show_overlap.py", *flags, ranks=1)
    names = ["computing only", "sending only", "one bucket", "DDP's buckets"]
    assert [one["setting"] for one in done.events("steps")] == names
    assert all(one["seconds"][0] > 0 for one in done.events("steps"))
    buckets = [one["tensors"] for one in done.events("bucket")]
    assert sum(map(len, buckets)) == 84, "the tensors of the deep model"
    sizes = [n_bytes for _, n_bytes in buckets[0]]
    assert sum(sizes[:-1]) < 2**20 < sum(sizes), "DDP's first bucket closes at 1 MiB"
    spans = [one for one in done.events("span") if one["kind"] == "all-reduce"]
    counts = [(one["setting"], one["rank"]) for one in spans]
    for rank in (0, 1):
        assert counts.count(("one bucket", rank)) == 1
        assert counts.count(("DDP's buckets", rank)) == len(buckets) > 1


@needs_mpirun
def test_a_wrong_algorithm_is_not_measured(as_two_instances):
    command = [HERE / "broken_two_tier.py", "--algorithms", "two_tier"]
    done = as_two_instances(*command, ranks=1, check=False)
    assert done.code != 0  # gloo may abort a rank whose peer has ended
    assert re.search(r"error: two_tier is wrong in \d+ of 1001 x 2 elements", done.stderr)
    assert done.events("all_reduce") == []


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--algorithms", "ring,bling"], "no algorithm 'bling'; there are gloo, naive, tree, ring"),
        (["--bytes", "1001"], "1001 given; a float32 has 4 bytes: give a multiple"),
        (["--bytes", "many"], "invalid sizes value: 'many'"),
        (["--blocks", "0"], "0 given, at least 1 expected"),
    ],
)
def test_measure_refuses_wrong_flags(monkeypatch, capsys, flags, said):
    import measure_all_reduce

    monkeypatch.setattr(sys, "argv", ["measure_all_reduce.py", *flags])
    with pytest.raises(SystemExit) as ended:
        measure_all_reduce.arguments()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_counts_what_an_interface_sent(tmp_path):
    from common.link_bytes import sent_bytes

    counters = tmp_path / "dev"
    counters.write_text(
        "Inter-|   Receive  |  Transmit\n face |bytes packets ...\n"
        "    lo: 11 1 0 0 0 0 0 0 11 1 0 0 0 0 0 0\n"
        "  eth0:700 3 0 0 0 0 0 0 900 4 0 0 0 0 0 0\n"
    )
    assert sent_bytes("eth0", counters) == 900
    assert sent_bytes("lo", counters) == 11
    assert sent_bytes("eth1", counters) is None
    assert sent_bytes("eth0", tmp_path / "absent") is None


def test_ranks_of_several_instances_meet_on_the_first(monkeypatch):
    import torch.distributed as dist
    from common import ranks_torch

    joined = {}
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **given: joined.update(given))
    for name in ("MASTER_ADDR", "MASTER_PORT", "RANK"):
        monkeypatch.setenv(name, "")  # so that what join_ranks sets is gone after the test
        monkeypatch.delenv(name)
    values = {"RANK": 3, "SIZE": 4, "LOCAL_RANK": 1, "LOCAL_SIZE": 2}
    for name, value in values.items():
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    monkeypatch.setenv("SM_HOSTS", '["algo-1", "algo-2"]')
    assert ranks_torch.join_ranks() == (1, 2)
    assert joined == {"rank": 3, "world_size": 4, "store": None}  # torch finds its own
    assert (ranks_torch.os.environ["MASTER_ADDR"]) == "algo-1"
    # Where all ranks are on one machine the name need not be known to it.
    monkeypatch.delenv("MASTER_ADDR")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
    ranks_torch.join_ranks()
    assert ranks_torch.os.environ["MASTER_ADDR"] == "127.0.0.1"
