"""`workshop jobs`, `logs` and `stop`: the jobs of the emulator."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from command_harness import ok, refused, run
from test_failures import until_log

from endpoint_harness import BUCKET, Endpoint, estimator, request, sdk_session, start
from workshop.cli import main

WORKSHOP = Path(sys.executable).parent / "workshop"
workshop = functools.partial(run, main)


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    one = Endpoint(tmp_path_factory.mktemp("jobs") / "state")
    one.client("s3").create_bucket(Bucket=BUCKET)
    one.put("data/part-0.txt", "x")
    yield one
    one.down()


@pytest.fixture
def session(up, monkeypatch):
    return sdk_session(up, monkeypatch)


def test_with_the_endpoint_down(tmp_path):
    for command in (["jobs"], ["logs", "a"], ["stop", "a"]):
        assert "Start it with: local-sagemaker start" in refused(workshop(tmp_path, *command))


def test_jobs_and_logs(up, session):
    job = up.wait(start(estimator(session, "show.py", instance_count=2)))
    up.client("sagemaker").create_training_job(**request("no-source"))
    up.wait("no-source")
    lines = ok(workshop(up.state, "jobs", AWS_PROFILE="no-such-profile")).splitlines()
    wanted = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  (\w+) +[0-9.]+ s  (\S+)"
    told = [re.fullmatch(wanted, line).groups() for line in lines]
    assert told == [("Failed", "no-source"), ("Completed", job.name)]
    said = ok(workshop(up.state, "logs", job.name))
    for host in ("algo-1", "algo-2"):
        assert re.search(rf"^{host}  SEEN ", said, re.MULTILINE)
    assert said.endswith("\nCompleted\n")
    assert "Failed: AlgorithmError: " in ok(workshop(up.state, "logs", "no-source"))
    assert f"{job.name} has ended already: Completed" in ok(workshop(up.state, "stop", job.name))
    for command in ("logs", "stop"):
        why = refused(workshop(up.state, command, "unheard-of"))
        assert "Job unheard-of" in why and "`workshop jobs` lists them" in why


def test_logs_follow_and_stop(up, session):
    options = {"hyperparameters": {"mode": "saves"}, "instance_count": 1}
    name = start(estimator(session, "fail.py", **options))
    follower = subprocess.Popen(
        [str(WORKSHOP), "logs", "--follow", name],
        env=os.environ | {"LOCAL_SAGEMAKER_STATE_DIR": str(up.state)},
        stdout=subprocess.PIPE,
        text=True,
    )
    until_log(up, name, "WAITS")
    assert follower.poll() is None
    assert ok(workshop(up.state, "stop", name)) == f"{name}: Stopped\n"
    said, _ = follower.communicate(timeout=30)
    assert follower.returncode == 0
    assert said.count("algo-1  BEGUN algo-1\n") == 1
    assert said.endswith("Stopped\n")
    told = up.wait(name).description  # and the script had time to save
    assert told["ModelArtifacts"]["S3ModelArtifacts"].endswith("model.tar.gz")
    with pytest.raises(ClientError, match="is in status Stopped"):
        up.client("sagemaker").stop_training_job(TrainingJobName=name)
