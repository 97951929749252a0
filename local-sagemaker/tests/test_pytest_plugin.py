"""The pytest plugin in a project that is not ours."""

import os
import subprocess
import sys

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


def test_it_works_in_a_project_of_its_own(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    (tmp_path / "test_train.py").write_text(TEST)
    env = os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(tmp_path / "another")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "local_sagemaker.pytest_plugin", "-q", "."],
        **{"cwd": tmp_path, "env": env, "capture_output": True, "text": True},
    )
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    assert not (tmp_path / "another").exists(), "not the emulator of the user"
