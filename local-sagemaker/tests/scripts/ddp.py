"""All-reduces over the job's own backend and prints the result."""

import json
import os
import socket
import sys

import torch
import torch.distributed as dist

backend = sys.argv[sys.argv.index("--backend") + 1]
if backend == "smddp":
    import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401
dist.init_process_group(backend)
total = torch.ones(2) * (dist.get_rank() + 1)
dist.all_reduce(total)
seen = {"rank": dist.get_rank(), "local_rank": int(os.environ["LOCAL_RANK"])}
seen |= {"size": dist.get_world_size(), "total": total.tolist(), "hostname": socket.gethostname()}
print("SEEN " + json.dumps(seen), flush=True)
dist.barrier()
dist.destroy_process_group()
if "mpi4py.MPI" in sys.modules:
    sys.modules["mpi4py.MPI"].Finalize()
sys.stdout.flush()
os._exit(0)  # a thread of gloo may abort while Python is taken down (pytorch/pytorch#190489)
