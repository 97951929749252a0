"""A job of the emulator whose ranks are recorded: asked while it hangs, and after its end."""

import time

import pytest

from workshop.diagnosis.answer import diagnose
from workshop.jobs.follow import FINAL

TRAIN = """
import os, time, torch, torch.distributed as dist
os.environ |= {"MASTER_ADDR": "algo-1", "MASTER_PORT": "29500"}
rank, size = (int(os.environ["OMPI_COMM_WORLD_" + name]) for name in ("RANK", "SIZE"))
dist.init_process_group("gloo", rank=rank, world_size=size)
for step in range(3):
    dist.all_reduce(torch.ones(4))
def elsewhere():
    time.sleep(600)
if rank == 1:
    elsewhere()
dist.all_reduce(torch.ones(8))
"""


@pytest.mark.slow
@pytest.mark.namespaces
def test_a_job_that_hangs_and_was_stopped(session, tmp_path):
    """Its ranks are in namespaces of their own: other process ids, other folders."""
    from sagemaker.pytorch import PyTorch

    (tmp_path / "train.py").write_text(TRAIN)
    estimator = PyTorch(
        entry_point="train.py",
        framework_version="2.2.0",
        py_version="py310",
        instance_type="ml.c5.xlarge",
        distribution={"mpi": {"enabled": True, "processes_per_host": 1}},
        **session.job_settings("hangs", source_dir=tmp_path) | {"instance_count": 2},
    )
    estimator.fit(wait=False)
    name, deadline = estimator.latest_training_job.name, time.monotonic() + 240
    while not (answer := diagnose(name, session)).cause and time.monotonic() < deadline:
        assert answer.evidence.description["TrainingJobStatus"] not in FINAL, str(answer)
        time.sleep(2)
    text = str(answer)
    assert answer.cause == "one rank does something else" and answer.evidence.running
    assert "rank 0 waits in all_reduce no. 4 (8 Float) at train.py:" in text.splitlines()[0]
    assert "Rank 1 has not called it: it is at train.py:" in text and "in elsewhere" in text
    assert [rank.note["host"] for rank in answer.evidence.ranks] == ["algo-1", "algo-2"]
    assert all(rank.alive for rank in answer.evidence.ranks)
    session.client("sagemaker").stop_training_job(TrainingJobName=name)
    estimator.latest_training_job.wait(logs="None")
    ended = diagnose(estimator)
    assert not ended.evidence.running and not any(rank.alive for rank in ended.evidence.ranks)
    assert ended.cause == "one rank does something else"
    assert "was last seen at train.py" in str(ended)
