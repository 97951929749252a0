"""The four jobs of tasks 2 and 3, beside the scripts: python jobs.py SEAT INTERRUPT_AT_STEP"""

import sys
from pathlib import Path

from sagemaker.pytorch import PyTorch

import workshop
from workshop.jobs.interruption import interrupt_at_step

seat, interrupt_at = sys.argv[1], int(sys.argv[2])
session = workshop.session(target="local", seat=seat)
channels = session.upload("digits")


def estimator(name, script, instances, ranks, spot=False):
    mpi = {"mpi": {"enabled": True, "processes_per_host": ranks}}
    return PyTorch(
        entry_point=script,
        framework_version="2.2.0",
        py_version="py310",
        instance_type="ml.c5.xlarge",
        instance_count=instances,
        distribution=mpi if script == "train_many.py" else None,
        **session.job_settings(f"capstone-{name}", spot, source_dir=Path(__file__).parent),
    )


jobs = {
    "alone": estimator("alone", "train_alone.py", 1, 1),
    "2x1": estimator("2x1", "train_many.py", 2, 1),
    "1x2": estimator("1x2", "train_many.py", 1, 2),
}
workshop.run_jobs(jobs, channels)
spot = estimator("spot", "train_many.py", 1, 2, spot=True)
spot.fit(channels, wait=False)
interrupt_at_step(spot.latest_training_job.name, interrupt_at, session)
workshop.follow(spot)
