"""Part 4: a hierarchical all-reduce, pipelined in chunks."""

import json
import shutil
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from harness.checks import check, expect
from harness.ranks import SUBMISSION, run

REFUSED = "Part 4 is made of dist.send, recv, isend and irecv only."
LENGTH = 2**18  # elements of the vector whose time is taken
INTRA, INTER = 2**21, 2**20  # bytes per second of a rank's two links there


def reduce(wire, lengths, per_instance, chunk_bytes):
    import adapters

    rank, world_size = dist.get_rank(), dist.get_world_size()
    for length in lengths:
        tensors = [torch.arange(length, dtype=torch.float32) % 7 + r for r in range(world_size)]
        tensor, first = tensors[rank].clone(), rank // per_instance * per_instance
        memory = tensor.detach()  # stays what it is if the tensor is given other memory
        adapters.hierarchical_all_reduce(tensor, per_instance, chunk_bytes)
        same_local_rank = tensors[rank % per_instance :: per_instance]
        mistakes = {
            "These are this rank's own numbers: write into the tensor's memory.": tensors[rank],
            "It is the sum of this instance.": sum(tensors[first : first + per_instance]),
            "It is the sum over the ranks with this local rank.": sum(same_local_rank),
            "It is the mean.": sum(tensors) / world_size,
        }
        check(memory, sum(tensors), f"the sum of {length} numbers", mistakes)
        wire.check_all_left(tensor)


def count_crossing(wire, length, per_instance, chunk_bytes):
    reduce(wire, [length], per_instance, chunk_bytes)
    return wire.sent(crossing_only=True)


def measure_seconds(wire, length, per_instance, chunk_bytes):
    import adapters

    tensor = torch.ones(length)
    adapters.hierarchical_all_reduce(torch.ones(8), per_instance, chunk_bytes)  # connects
    began = time.monotonic()
    adapters.hierarchical_all_reduce(tensor, per_instance, chunk_bytes)
    seconds = time.monotonic() - began
    expected = torch.full((length,), float(dist.get_world_size()))
    check(tensor, expected, f"the sum of {length} ones")
    return seconds


@pytest.mark.points(5)
def test_sum(draw):
    for instances, per_instance in ((2, 2), draw.choice([(3, 2), (2, 3), (2, 4)]), (1, 3), (3, 1)):
        lengths = [draw.randint(40, 400), 1, instances * per_instance + 1]
        options = {"ranks_per_instance": per_instance, "refused": REFUSED}
        for chunk_bytes in (draw.choice([64, 100]), 2**20):
            run(instances * per_instance, reduce, lengths, per_instance, chunk_bytes, **options)


@pytest.mark.points(5)
def test_bytes_between_instances(draw, record_property):
    instances, per_instance = draw.choice([(2, 2), (3, 2), (2, 3), (2, 4)])
    length = draw.randint(20_000, 40_000)
    results = run(
        *(instances * per_instance, count_crossing, length, per_instance, length),
        ranks_per_instance=per_instance,
        refused=REFUSED,
    )
    starts = range(0, len(results), per_instance)
    by_instance = [sum(results[start : start + per_instance]) for start in starts]
    ideal = 2 * (instances - 1) / instances * 4 * length
    figure = round(max(by_instance) / ideal, 4)
    record_property("leaderboard: bytes over the link / 2 (I - 1) / I of the vector", figure)
    for instance, sent in enumerate(by_instance):
        expect(
            sent <= 1.01 * ideal + 1000,
            f"{instances} instances of {per_instance} ranks: {sent:,.0f} bytes left instance "
            f"{instance} to all-reduce {4 * length:,}. With I instances 2 (I - 1) / I of the "
            f"vector must cross, {ideal:,.0f}: add up within the instance first.",
        )


@pytest.mark.points(5)
def test_both_links_work_at_the_same_time(draw):
    """Each rank's link to its instance, and that to the others, take 0.5 s for their bytes."""
    chunk_bytes = LENGTH * 4 // draw.choice([8, 10])
    alone = 0.5  # seconds of each link: 2 / 2 of the vector, and 1 / 2 of it
    for _ in range(2):  # a busy machine is no failure
        seconds = max(
            run(
                *(4, measure_seconds, LENGTH, 2, chunk_bytes),
                ranks_per_instance=2,
                refused=REFUSED,
                delay=lambda call: call.nbytes / (INTER if call.crosses else INTRA),
            )
        )
        if seconds < 1.7 * alone:
            return
    pytest.fail(
        f"2 instances of 2 ranks: {seconds:.2f} s. Either link alone takes {alone} s, one after "
        f"the other {2 * alone} s, and less than {1.7 * alone:.2f} s was expected. While a "
        "chunk crosses, add up the next one within the instance.",
        pytrace=False,
    )


@pytest.mark.links
def test_milliseconds_at_200_mbit(tmp_path, request, record_property):
    """For the leaderboard: 8 MB on 2 instances of 4 ranks, as a job of local-sagemaker."""
    local_sagemaker = pytest.importorskip("local_sagemaker", reason="needs the kit")
    if reason := local_sagemaker.shaping_unavailable_reason():
        pytest.skip(f"links cannot be limited here: {reason}")
    not_the_students = shutil.ignore_patterns(".*", "build", "tests")
    shutil.copytree(SUBMISSION, tmp_path, ignore=not_the_students, dirs_exist_ok=True)
    entry = shutil.copy(Path(__file__).with_name("on_links.py"), tmp_path / "project_on_links.py")
    try:
        run(4, reduce, [1000], 2, 1000)
    except pytest.fail.Exception:
        pytest.skip("no job on limited links: the sum is wrong")
    job = request.getfixturevalue("run_training_job")(
        entry,
        distribution={"mpi": {"enabled": True, "processes_per_host": 4}},
        environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"},
    )
    reason = "\n".join((job.failure_reason or "").splitlines()[:3])
    expect(job.status == "Completed", f"the job on two instances of four ranks: {reason}")
    (line,) = job.lines("milliseconds ")
    name = "leaderboard: ms for 8 MB, 2 instances of 4 ranks, 200 Mbit/s"
    record_property(name, json.loads(line))
