"""The SMDDP stand-in gives what gloo's own all-reduce gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import local_sagemaker

SITE = Path(local_sagemaker.__file__).parent / "container" / "site"

# 4 ranks that believe to be 2 on each of 2 instances; gloo's own result is the oracle. They are
# forked once torch is imported.
PROGRAM = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
os.environ |= {"WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}
import smdistributed.dataparallel.torch.torch_smddp as smddp
ranks = []
for rank in range(4):
    ranks.append(os.fork())
    if ranks[-1] == 0:
        break
else:
    sys.exit(any(os.waitpid(one, 0)[1] for one in ranks))
dist.init_process_group("smddp", init_method="file://" + sys.argv[1], rank=rank, world_size=4)
os.environ["WORLD_SIZE"] = "5"  # SMDDP has no groups of some ranks; torch's own may be there
try:
    smddp.HierarchicalGroup(dist.HashStore(), 0, 4, timedelta(seconds=9))
except ValueError as error:
    assert "no groups of 4 of 5 ranks" in str(error), error
else:
    raise AssertionError("a group of some ranks was made")
os.environ["WORLD_SIZE"] = "4"
oracle = dist.new_group(backend="gloo")
generator = torch.Generator().manual_seed(dist.get_rank())

def expected_of(mine, operation):
    expected = mine.clone()
    if operation == dist.ReduceOp.AVG:
        dist.all_reduce(expected, dist.ReduceOp.SUM, group=oracle)
        return expected / dist.get_world_size()
    dist.all_reduce(expected, operation, group=oracle)
    return expected

def numbers(*shape):
    return torch.randint(-8, 8, shape, generator=generator).float()

for size in (0, 1, 2, 7, 1000):
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.AVG):
        mine = numbers(size)
        expected = expected_of(mine, operation)
        dist.all_reduce(mine, operation)
        assert torch.equal(mine, expected), (size, operation, mine, expected)
for kind in (torch.int64, torch.float64, torch.float16):
    mine = numbers(3, 5).to(kind).t()  # with gaps in memory
    expected = expected_of(mine.contiguous(), dist.ReduceOp.SUM)
    dist.all_reduce(mine)
    assert torch.equal(mine, expected), (kind, mine, expected)
several = [numbers(size) for size in (3, 100_000, 1, 50_000)]
expected = [expected_of(mine, dist.ReduceOp.SUM) for mine in several]
works = [dist.all_reduce(mine, async_op=True) for mine in several]
dist.barrier()
for work, mine, right in reversed(list(zip(works, several, expected))):
    work.wait()
    assert torch.equal(mine, right)
store = dist.distributed_c10d._get_default_store()
for per_instance in ("1", "4"):
    os.environ["LOCAL_WORLD_SIZE"] = per_instance
    place = (dist.PrefixStore(per_instance, store), dist.get_rank(), 4, timedelta(seconds=60))
    group, mine = smddp.HierarchicalGroup(*place), numbers(101)
    expected = expected_of(mine, dist.ReduceOp.SUM)
    group.allreduce([mine]).wait()
    assert torch.equal(mine, expected), per_instance
torch.manual_seed(dist.get_rank())
layers = [torch.nn.Linear(50, 700), torch.nn.ReLU(), torch.nn.Linear(700, 3)]
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers), bucket_cap_mb=0.05)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    images = torch.randn(4, 50)
    model(images).square().mean().backward()
    alone = torch.nn.Sequential(*layers)
    mine = torch.autograd.grad(alone(images).square().mean(), list(alone.parameters()))
    for parameter, gradient in zip(model.parameters(), mine):
        dist.all_reduce(gradient, group=oracle)
        assert torch.allclose(parameter.grad, gradient / 4, rtol=1e-5, atol=1e-7)
    optimizer.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
everybody = [torch.empty_like(flat) for _ in range(4)]
dist.all_gather(everybody, flat)
assert all(torch.equal(flat, other) for other in everybody), "the replicas differ"
dist.barrier()
os.write(1, f"EQUAL {dist.get_rank()}\\n".encode())  # one write: ranks do not interleave
os._exit(0)  # a thread of gloo may abort while Python is taken down (pytorch/pytorch#190489)
"""


def test_all_reduce_and_ddp(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "store")],
        env={**os.environ, "PYTHONPATH": str(SITE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    output = sorted(line for line in done.stdout.splitlines() if line.startswith("EQUAL"))
    assert output == [f"EQUAL {rank}" for rank in range(4)], done.stdout + done.stderr[-3000:]
