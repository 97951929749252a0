"""The SMDDP stand-in gives what gloo gives."""

import os
import sys
from pathlib import Path

from emulator_harness import captured

import local_sagemaker

SITE = Path(local_sagemaker.__file__).parent / "container" / "site"

# Two ranks, forked once torch is imported; the same model on one process's data is the oracle.
PROGRAM = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
os.environ["WORLD_SIZE"] = "2"
import smdistributed.dataparallel.torch.torch_smddp as smddp
rank = 0 if (child := os.fork()) else 1
dist.init_process_group("smddp", init_method="file://" + sys.argv[1], rank=rank, world_size=2)
assert dist.get_backend() == "smddp"
try:
    smddp.gloo(dist.HashStore(), 0, 1, timedelta(seconds=9))
except ValueError as error:
    assert "no groups of 1 of 2 ranks" in str(error), error
else:
    raise AssertionError("a group of some ranks was made")
torch.manual_seed(0)
layer = torch.nn.Linear(50, 3)
images = torch.randn(8, 50)
expected, = torch.autograd.grad(layer(images).square().mean(), [layer.weight])
model = torch.nn.parallel.DistributedDataParallel(layer)
model(images[rank::2]).square().mean().backward()
assert torch.allclose(layer.weight.grad, expected, rtol=1e-5, atol=1e-7)
works = [dist.all_reduce(torch.ones(size), async_op=True) for size in (0, 7, 1000)]
for work in works:
    work.wait()
dist.barrier()
os.write(1, f"EQUAL {rank}\\n".encode())  # one write: ranks do not interleave
if rank == 0:
    os.waitpid(child, 0)
os._exit(0)  # a thread of gloo may abort while Python is taken down (pytorch/pytorch#190489)
"""


def test_all_reduce_and_ddp(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "store")]
    env = os.environ | {"PYTHONPATH": str(SITE), "OMP_NUM_THREADS": "1"}
    done = captured(command, env=env, timeout=240)
    output = sorted(line for line in done.stdout.splitlines() if line.startswith("EQUAL"))
    assert output == ["EQUAL 0", "EQUAL 1"], done.stdout + done.stderr[-3000:]
