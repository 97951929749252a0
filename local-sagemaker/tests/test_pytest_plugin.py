"""The pytest plugin in a project that is not ours."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os
print("done", os.environ["SM_CURRENT_HOST"], os.environ["SM_HP_EPOCHS"])
"""
TEST = """
def test_two_instances(run_training_job, sagemaker_emulator, sagemaker_session):
    job = run_training_job("code/train.py", hyperparameters={"epochs": 3})
    assert job.status == "Completed", job.failure_reason
    assert sorted(job.lines("done")) == ["algo-1 3", "algo-2 3"]
    assert sagemaker_session.boto_session.client("s3").meta.endpoint_url == sagemaker_emulator.url


def test_a_failure(run_training_job):
    job = run_training_job("code/train.py", instances=1)
    assert job.status == "Failed" and "SM_HP_EPOCHS" in job.failure_reason
"""


MEET = """
import os, socket, time

host, project = os.environ["SM_CURRENT_HOST"], os.environ["SM_HP_PROJECT"]
master, waits = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), time.monotonic() + 60
if host == "algo-1":
    with socket.create_server(master) as listener:
        listener.accept()[0].sendall(project.encode())
while host == "algo-2":
    try:
        print("met", socket.create_connection(master).recv(99).decode())
        break
    except OSError:
        assert time.monotonic() < waits
        time.sleep(0.1)
"""
MEETING = """
import pytest

@pytest.mark.parametrize("number", range(2))
def test_two_instances_meet(run_training_job, sagemaker_emulator, number):
    project = f"worker {number}"
    key = sagemaker_emulator.put("whose", project)
    job = run_training_job("code/train.py", hyperparameters={"project": project})
    assert job.status == "Completed", job.failure_reason
    assert job.lines("met") == [project]
    assert sagemaker_emulator.get(key).decode() == project
"""


def begin(folder, script: str, test: str, *options: str) -> subprocess.Popen:
    """A project of somebody else, and its test suite."""
    (folder / "code").mkdir(parents=True)
    (folder / "code" / "train.py").write_text(script)
    (folder / "test_train.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-p", "local_sagemaker.pytest_plugin", "-q", "."]
    return subprocess.Popen(
        [*command, *options],
        cwd=folder,
        env=os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(folder / "another")},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_it_works_in_projects_of_their_own_at_the_same_time(tmp_path):
    """Three emulators, with the same names for hosts, ports, buckets and keys."""
    alone = begin(tmp_path / "alone", SCRIPT, TEST)
    workers = begin(tmp_path / "workers", MEET, MEETING, "-n", "2")
    outputs = [suite.communicate()[0] for suite in (alone, workers)]
    assert ["2 passed" in output for output in outputs] == [True, True], outputs
    for folder in tmp_path.iterdir():
        assert not (folder / "another").exists(), "not the emulator of the user"
