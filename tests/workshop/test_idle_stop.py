"""idle_stop.py of the notebook instance, as a program: it asks Jupyter, and tells SageMaker."""

import json
import runpy
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from notebook_instance_harness import jupyter, kit_archive

import workshop
from workshop.account import notebook_instance, stacks
from workshop.paths import CLOUDFORMATION

PROGRAM = CLOUDFORMATION / "notebook/idle_stop.py"
SECONDS = 0.6  # without use, until it stops
MORE_SECONDS = 1.5  # where it must not stop although the machine may be slow


@pytest.fixture
def instance(own_endpoint, clean_aws, monkeypatch, tmp_path):
    """A notebook instance that is in service: its metadata file, and what SageMaker says of it."""
    monkeypatch.setattr(notebook_instance, "_packed", kit_archive)
    session = workshop.session("local", seat="idle")
    stacks.deploy(session, ("storage", "roles", "notebook"), say=lambda _: None)
    name = stacks.outputs(session, ("notebook",))["NotebookName"]
    client = session.client("sagemaker")
    found = client.describe_notebook_instance(NotebookInstanceName=name)
    if found["NotebookInstanceStatus"] == "Stopped":
        client.start_notebook_instance(NotebookInstanceName=name)
    metadata = tmp_path / "resource-metadata.json"
    metadata.write_text(
        json.dumps({"ResourceArn": found["NotebookInstanceArn"], "ResourceName": name})
    )

    def status():
        return client.describe_notebook_instance(NotebookInstanceName=name)[
            "NotebookInstanceStatus"
        ]

    assert status() == "InService"
    return metadata, status


def ago(seconds):
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def kernel(state, used):
    return {"id": "k", "execution_state": state, "last_activity": used, "connections": 1}


def watching(address, metadata, seconds=SECONDS):
    command = [sys.executable, PROGRAM, "--minutes", str(seconds / 60), "--every", "0.1"]
    command += ["--jupyter", address, "--metadata", metadata]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finished(process):
    """Wait for its end; what it printed."""
    try:
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, out
    return out


def test_an_unused_instance_is_stopped(instance):
    metadata, status = instance
    states = ("idle", "starting", "dead")  # a kernel that nobody connects to starts for ever
    answers = {"/api/kernels": [kernel(one, ago(3600)) for one in states], "/api/terminals": []}
    with jupyter(answers) as address:
        began = time.monotonic()
        out = finished(watching(address, metadata))
        assert time.monotonic() - began >= SECONDS, "a fresh start is use"
    assert "Told SageMaker to stop" in out
    assert status() == "Stopped"


def uses(moment):
    """What Jupyter answers in each kind of use. moment: of the last activity."""
    return {
        "a kernel runs a cell": {"/api/kernels": [kernel("busy", ago(99)), kernel("idle", ago(9))]},
        "a kernel ran a cell": {"/api/kernels": [kernel("idle", moment), kernel("idle", ago(99))]},
        "a terminal": {"/api/terminals": [{"name": "1", "last_activity": moment}]},
    }


def test_an_instance_in_use_is_not_stopped_until_the_use_ends(instance):
    metadata, status = instance
    unused = {"/api/kernels": [kernel("idle", ago(3600))], "/api/terminals": []}
    answers = unused.copy()
    with jupyter(answers) as address:
        process = watching(address, metadata, MORE_SECONDS)
        for use in uses(""):
            # The activity is a little ahead: enough for this use on a slow machine, not for two.
            answers.update({**unused, **uses(ago(-MORE_SECONDS))[use]})
            time.sleep(1.4 * MORE_SECONDS)
            assert process.poll() is None, f"stopped although: {use}"
        assert status() == "InService"
        answers.update(unused)
        finished(process)
    assert status() == "Stopped"


def test_a_jupyter_that_does_not_answer_does_not_keep_it_alive(instance):
    metadata, status = instance
    out = finished(watching("http://127.0.0.1:9", metadata))
    assert "Jupyter does not answer" in out
    assert status() == "Stopped"


def test_a_refused_stop_is_tried_again(instance):
    metadata, status = instance
    right = metadata.read_text()
    metadata.write_text(right.replace('"ResourceName": "', '"ResourceName": "no-such-'))
    with jupyter({"/api/kernels": [], "/api/terminals": []}) as address:
        process = watching(address, metadata)
        assert any("Cannot stop this instance" in line for line in process.stdout)
        assert process.poll() is None and status() == "InService"
        metadata.write_text(right)
        finished(process)
    assert status() == "Stopped"


@pytest.mark.parametrize("moment", ["2026-11-21T10:00:00.500000Z", "2026-11-21T10:00:00Z"])
def test_jupyters_times_are_utc(moment):
    found = runpy.run_path(str(PROGRAM))["seconds"](moment)
    assert int(found) == 1795255200
