"""`workshop jobs`, `logs` and `stop`: the jobs of the emulator."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from command_harness import ok, refused, run
from emulator_harness import until_log

from local_sagemaker.pytest_plugin import BUCKET, emulator, estimator, sdk_session, start
from workshop.cli import main
from workshop.paths import ROOT

WORKSHOP = Path(sys.executable).parent / "workshop"
SCRIPTS = ROOT / "local-sagemaker" / "tests" / "scripts"
command = functools.partial(run, main)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """An emulator that has no jobs but these tests'."""
    with emulator(tmp_path_factory.mktemp("jobs") / "state") as running:
        running.client("s3").create_bucket(Bucket=BUCKET)
        yield running


@pytest.fixture
def session(running, monkeypatch):
    return sdk_session(running, monkeypatch)


def test_without_an_emulator(tmp_path):
    for words in (["jobs"], ["logs", "a"], ["stop", "a"]):
        assert "Start it with: local-sagemaker start" in refused(command(tmp_path, *words))


def test_jobs_and_logs(running, session):
    inputs = {"training": running.put("data/part-0.txt", "x")}
    job = running.wait(start(estimator(session, SCRIPTS / "show.py"), inputs))
    options = {"instance_count": 1, "hyperparameters": {"mode": "raise"}}
    failed = running.wait(start(estimator(session, SCRIPTS / "fail.py", **options)))
    lines = ok(command(running.state, "jobs", AWS_PROFILE="no-such-profile")).splitlines()
    row = r"(\w+) +\d+ s  (\d) x ml.m5.xlarge +(\S+)"
    listed = [re.fullmatch(row, line).groups() for line in lines]
    assert listed == [("Failed", "1", failed.name), ("Completed", "2", job.name)]
    log = ok(command(running.state, "logs", job.name))
    for host in ("algo-1", "algo-2"):
        assert re.search(rf"^{host}  SEEN ", log, re.MULTILINE)
    assert log.endswith("\nCompleted\n")
    assert "Failed: AlgorithmError: " in ok(command(running.state, "logs", failed.name))
    assert f"{job.name} has ended already: Completed" in ok(
        command(running.state, "stop", job.name)
    )
    for word in ("logs", "stop"):
        message = refused(command(running.state, word, "unheard-of"))
        assert "Job unheard-of" in message and " jobs` lists them" in message


def test_logs_follow_and_stop(running, session):
    options = {"hyperparameters": {"mode": "saves"}, "instance_count": 1}
    name = start(estimator(session, SCRIPTS / "fail.py", **options))
    follower = subprocess.Popen(
        [str(WORKSHOP), "logs", "--follow", name],
        env=os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(running.state)},
        stdout=subprocess.PIPE,
        text=True,
    )
    until_log(running, name, "WAITS")
    assert follower.poll() is None
    assert ok(command(running.state, "stop", name)) == f"{name}: Stopped\n"
    log, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert log.count("algo-1  BEGUN algo-1\n") == 1
    assert log.endswith("Stopped\n")
    artifacts = running.wait(name).description["ModelArtifacts"]
    assert artifacts["S3ModelArtifacts"].endswith("model.tar.gz"), "the script had time to save"
    with pytest.raises(ClientError, match="is in status Stopped"):
        running.client("sagemaker").stop_training_job(TrainingJobName=name)
