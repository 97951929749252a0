"""The pytest plugin in a project that is not ours, whose tests two workers run at once."""

import os
import subprocess
import sys
import types

import pytest

from local_sagemaker import pytest_plugin

SCRIPT = """
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
TEST = """
import pytest

@pytest.mark.parametrize("number", range(2))
def test_two_instances_meet(run_training_job, sagemaker_emulator, sagemaker_session, number):
    project = f"worker {number}"
    assert sagemaker_session.boto_session.client("s3").meta.endpoint_url == sagemaker_emulator.url
    key = sagemaker_emulator.put("whose", project)
    job = run_training_job("code/train.py", hyperparameters={"project": project})
    assert job.status == "Completed", job.failure_reason
    assert job.lines("met") == [project]
    assert sagemaker_emulator.get(key).decode() == project
    if number:
        job = run_training_job("code/train.py", instances=1)
        assert job.status == "Failed" and "SM_HP_PROJECT" in job.failure_reason
"""


@pytest.mark.slow
def test_each_worker_has_an_emulator_and_nobody_uses_the_users(tmp_path):
    """Two emulators, with the same names for hosts, ports, buckets and keys."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text(SCRIPT)
    (tmp_path / "test_train.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-p", "local_sagemaker.pytest_plugin", "-q", "-n2"]
    env = os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(tmp_path / "another")}
    done = subprocess.run([*command, "."], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
    assert not (tmp_path / "another").exists(), "not the emulator of the user"


def test_with_version_3_of_the_sdk_the_fixtures_say_what_to_install(monkeypatch):
    """`pip install sagemaker` brings version 3, which has no Session of this name."""
    monkeypatch.setitem(sys.modules, "sagemaker", types.ModuleType("sagemaker"))
    with pytest.raises(pytest.fail.Exception, match="pip install 'sagemaker<3'"):
        pytest_plugin.sdk_session(types.SimpleNamespace(env={}), monkeypatch)
