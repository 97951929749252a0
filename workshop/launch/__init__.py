"""Start processes on this machine, and leave none behind.

    from workshop.launch.mpirun import mpirun                # ranks of MPI
    from workshop.launch.processes import run_together       # independent processes, torchrun
    from workshop.launch.ranks import start_ranks            # ranks that run a notebook's functions

All stand on `processes.Processes`, which stands on local_sagemaker's supervisor. `horovod` tells
whether Horovod is installed, and what the Horovod lessons run where it is not.
"""
