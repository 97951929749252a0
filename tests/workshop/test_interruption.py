"""A spot job is interrupted at a step of its log, not after some seconds."""

import json

import pytest

from workshop.jobs import interruption


class Session:
    """A session with a job whose log grows by a line at each look.

    last: the step at which the job ends. asked: the jobs that were to be interrupted.
    """

    def __init__(self, target: str, last: int) -> None:
        self.target, self.last, self.step = target, last, 0

    def client(self, service):
        return self

    def describe_training_job(self, TrainingJobName):
        return {"TrainingJobStatus": "InProgress" if self.step < self.last else "Completed"}


@pytest.fixture
def asked(monkeypatch, tmp_path):
    found = []

    class Reader:
        def __init__(self, client, job):
            self.session = client

        def new_lines(self):
            self.session.step += 10
            text = json.dumps({"event": "step", "step": self.session.step})
            return [interruption_line("no JSON"), interruption_line(text)]

    monkeypatch.setattr(interruption, "LogReader", Reader)
    monkeypatch.setattr(interruption, "POLL_SECONDS", 0)
    monkeypatch.setattr(interruption.spot, "ask", lambda state, job: found.append(job))
    return found


def interruption_line(text):
    from workshop.jobs.logs import Line

    return Line("algo-1", None, text, "algo-1")


def test_it_is_asked_for_when_the_step_is_reached(asked):
    session = Session("local", last=1000)
    interruption.interrupt_at_step("job", 55, session)
    assert asked == ["job"] and session.step == 60


def test_a_job_that_ends_first_is_left_alone(asked):
    interruption.interrupt_at_step("job", 500, Session("local", last=100))
    assert asked == []


def test_on_aws_nobody_can_order_it(asked):
    interruption.interrupt_at_step("job", 1, Session("aws", last=100))
    assert asked == []
