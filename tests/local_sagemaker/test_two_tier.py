"""The SMDDP stand-in gives what gloo's own all-reduce gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).parent.parent.parent / "local_sagemaker" / "image" / "site"

# 4 ranks that believe to be 2 on each of 2 hosts; gloo's own result is the oracle.
PROGRAM = """
import os, torch, torch.distributed as dist
os.environ["LOCAL_WORLD_SIZE"] = "2"
import smdistributed.dataparallel.torch.torch_smddp
dist.init_process_group("smddp")
oracle = dist.new_group(backend="gloo")
generator = torch.Generator().manual_seed(dist.get_rank())
for size in (1, 2, 7, 1000):
    for operation in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.AVG):
        mine = torch.randint(-8, 8, (size,), generator=generator).float()
        expected = mine.clone()
        if operation == dist.ReduceOp.AVG:
            dist.all_reduce(expected, dist.ReduceOp.SUM, group=oracle)
            expected /= dist.get_world_size()
        else:
            dist.all_reduce(expected, operation, group=oracle)
        dist.all_reduce(mine, operation)
        assert torch.equal(mine, expected), (size, operation, mine, expected)
torch.manual_seed(dist.get_rank())
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(5, 3))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(4, 5)).square().mean().backward()
    optimizer.step()
flat = torch.cat([p.detach().flatten() for p in model.parameters()])
everybody = [torch.empty_like(flat) for _ in range(4)]
dist.all_gather(everybody, flat, group=oracle)
assert all(torch.equal(flat, other) for other in everybody), "the replicas differ"
dist.barrier()
os.write(1, f"EQUAL {dist.get_rank()}\\n".encode())  # one write: ranks do not interleave
"""


def test_all_reduce_and_ddp(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*torchrun, "--nproc_per_node", "4", str(program)],
        env={**os.environ, "PYTHONPATH": str(SITE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    said = sorted(line for line in done.stdout.splitlines() if line.startswith("EQUAL"))
    assert said == [f"EQUAL {rank}" for rank in range(4)], done.stdout + done.stderr[-3000:]
