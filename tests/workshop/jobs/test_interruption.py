"""A spot job is interrupted at a step of its log, not after some seconds."""

import json
from types import SimpleNamespace

import pytest

from local_sagemaker.training import spot
from workshop.jobs import interruption
from workshop.jobs.logs import parse


@pytest.mark.parametrize(
    ("target", "step", "ends", "interrupted", "seen"),
    [
        ("local", 55, 1000, ["job"], 60),
        ("local", 500, 100, [], 100),  # a job that ends first is left alone
        ("aws", 1, 100, [], 0),  # nobody can order it there
    ],
)
def test_it_is_asked_for_when_the_step_is_reached(
    monkeypatch, target, step, ends, interrupted, seen
):
    """The log grows by ten steps at each look; at the step `ends` the job ends."""
    at, jobs = SimpleNamespace(step=0), []

    def new_lines():
        at.step += 10
        return [parse("algo-1", text) for text in ("no JSON", json.dumps(event | vars(at)))]

    def describe_training_job(TrainingJobName):
        return {"TrainingJobStatus": "InProgress" if at.step < ends else "Completed"}

    event = {"event": "step"}
    client = SimpleNamespace(describe_training_job=describe_training_job)
    session = SimpleNamespace(target=target, client=lambda service: client)
    reader = SimpleNamespace(new_lines=new_lines)
    monkeypatch.setattr(interruption, "LogReader", lambda client, job: reader)
    monkeypatch.setattr(interruption, "POLL_SECONDS", 0)
    monkeypatch.setattr(spot, "ask", lambda state, job: jobs.append(job))
    interruption.interrupt_at_step("job", step, session)
    assert (jobs, at.step) == (interrupted, seen)
