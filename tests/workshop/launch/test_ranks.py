"""`workshop.start_ranks`: real processes that work together, and what they say when they don't."""

import os
import time

import numpy as np
import pytest
from emulator_harness import wait_until_gone

from workshop.launch.ranks import RankFailed, start_ranks


@pytest.fixture(scope="module")
def ranks():
    with start_ranks(2) as started:
        yield started


def who():
    import torch.distributed as dist

    return os.getpid(), dist.get_rank(), dist.get_world_size()


def total(value):
    import torch
    import torch.distributed as dist

    tensor = torch.tensor([float(value)])
    dist.all_reduce(tensor)
    return {"total": tensor}


def test_the_ranks_are_processes_of_one_group(ranks):
    results = ranks.run(who)
    assert [result[1:] for result in results] == [(0, 2), (1, 2)]
    assert [result[0] for result in results] == ranks.pids
    assert len({os.getpid(), *ranks.pids}) == 3


def test_each_rank_takes_its_part_and_tensors_come_back_as_arrays(ranks):
    results = ranks.run_each(total, [1, 10])
    assert [result["total"].tolist() for result in results] == [[11.0], [11.0]]
    assert isinstance(results[0]["total"], np.ndarray)
    with pytest.raises(ValueError, match="3 parts for 2 ranks"):
        ranks.run_each(total, [1, 2, 3])


def test_what_a_rank_prints_is_shown_with_its_rank(ranks, capsys):
    def talk():
        import torch.distributed as dist

        print("from", dist.get_rank())

    ranks.run(talk)
    assert sorted(capsys.readouterr().out.splitlines()) == ["[0] from 0", "[1] from 1"]


def test_seconds_are_those_of_the_slowest_rank(ranks):
    def slow_on_one():
        import torch.distributed as dist

        time.sleep(0.2 * dist.get_rank())

    seconds = ranks.seconds(slow_on_one, repeats=3)
    assert len(seconds) == 3 and all(0.2 <= slowest < 5 for slowest in seconds)


def test_a_function_of_scripts_runs_by_its_name(ranks):
    assert ranks.run("common.arguments:local_batch_size", 64, 2) == [32, 32]
    with pytest.raises(RankFailed, match=r"rank 0: ModuleNotFoundError: No module named 'nothing'"):
        ranks.run("nothing:here")


def test_an_error_names_rank_line_and_ends_all(ranks):
    def fail():
        import torch.distributed as dist

        if dist.get_rank() == 1:
            raise ValueError("no such batch")
        dist.barrier()

    before = ranks.pids
    with pytest.raises(RankFailed, match="rank 1: ValueError: no such batch") as caught:
        ranks.run(fail)
    assert "in fail" in str(caught.value) and "rank_process.py" not in str(caught.value)
    wait_until_gone(before)
    assert [result[1] for result in ranks.run(who)] == [0, 1], "the next run has new ranks"


def test_ranks_that_wait_for_ever_are_named_with_their_place(ranks):
    def one_comes_too_few():
        import torch.distributed as dist

        if dist.get_rank() == 0:
            dist.barrier()

    with pytest.raises(RankFailed, match="rank 0 had not returned") as caught:
        ranks.run(one_comes_too_few, timeout=2)
    assert "in one_comes_too_few" in str(caught.value)
    assert "rank_process.py" not in str(caught.value) and "runpy" not in str(caught.value)
    assert "rank 1:" not in str(caught.value)


def test_a_rank_that_dies_is_named(ranks):
    with pytest.raises(RankFailed, match=r"rank \d: its process died \(exit status 3\)"):
        ranks.run(os._exit, 3)


@pytest.mark.parametrize("count", [0, 65])
def test_a_senseless_count_is_refused(count):
    with pytest.raises(ValueError, match="1 to 64"):
        start_ranks(count)
