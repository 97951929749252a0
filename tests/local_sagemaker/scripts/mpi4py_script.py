"""As the mpi4py tutorials' first steps (mpi4py.readthedocs.io), started by distribution mpi."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
total = np.empty(1)
comm.Allreduce(np.array([float(comm.rank + 1)]), total)
names = comm.gather(MPI.Get_processor_name())
if comm.rank == 0:
    print("SUM", int(total[0]), len(set(names)), flush=True)
