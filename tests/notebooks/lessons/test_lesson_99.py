"""Lesson 99 deletes what it made itself, and a seat's own only where it is told."""

from types import SimpleNamespace

import jupytext
import stacks_harness
from course_text import lessons
from lesson_runs import OWN_BUCKET, SEAT

import workshop
from local_sagemaker.pytest_plugin import emulator
from workshop.account import cleanup, stacks
from workshop.jobs import local_server

ROLE = "arn:aws:iam::" + "0" * 12 + ":role/workshop"


def buckets(client):
    return [bucket["Name"] for bucket in client.list_buckets()["Buckets"]]


def own_seat(**parameters):
    """Run the code of the section `Your own seat`; return what it has set."""
    cells = jupytext.read(lessons()["99"]).cells
    heads = [cell.source.startswith("## Your own seat") for cell in cells]
    first = heads.index(True) + 1
    names = {"workshop": workshop, "cleanup": cleanup, **parameters}
    for cell in cells[first : first + 3]:
        assert cell.cell_type == "code"
        exec(cell.source, names)
    return names


def test_a_run_that_was_broken_off_can_be_run_again(monkeypatch):
    """The cell that makes entries of models makes those that are not there, each once."""
    with stacks_harness.aws(monkeypatch):
        run_the_cell_again()


def run_the_cell_again():
    (cell,) = (
        entry for entry in jupytext.read(lessons()["99"]).cells if "create_model(" in entry.source
    )
    api, prefix = stacks_harness.shared().client("sagemaker"), "workshop-broken99-"
    names = {
        "session": SimpleNamespace(client=lambda _: api, job_prefix=prefix, role=ROLE),
        "estimator": SimpleNamespace(training_image_uri=lambda: "image"),
        "result": SimpleNamespace(model="s3://bucket/model.tar.gz"),
        "stacks": stacks,
        "practice": "broken99",
    }
    made = [prefix + "digits", prefix + "of-a-colleague"]
    # AWS refuses a name that is there; the emulator writes over it. So the calls are counted.
    creations = []
    api.meta.events.register(
        "before-call.sagemaker.CreateModel", lambda params, **_: creations.append(params["body"])
    )
    for _ in range(2):
        exec(cell.source, names)
        assert len(creations) == 2, "a name that was there was asked for again"
        there = [entry["ModelName"] for entry in api.list_models(NameContains=prefix)["Models"]]
        assert sorted(there) == made
    api.delete_model(ModelName=made[0])
    exec(cell.source, names)
    assert len(creations) == 3 and api.describe_model(ModelName=made[0]), (
        "broken off between the two"
    )


def test_lesson_99(lesson, results):
    # The data are five files; the job adds its code and its model.
    assert results["kinds"].pop("objects") >= 7
    assert results["kinds"] == {
        "models": 1,
        "log streams of training jobs": 1,
        "records of training jobs": 1,
        "stacks": 2,
    }
    # The model and the log went before the interrupt.
    assert results["done"] == 4 and results["left"] == 0 and results["again"] == 0
    assert "Interrupted. Left: records of training jobs, objects, stacks" in lesson.printed
    assert results["jobs_left"] == 0 and results["foreign_survived"] is True
    assert 1000 < results["gigabytes"] < 2500, "0.05 USD an hour against 0.023 a GB-month"
    assert 0 < results["usd_per_month"] < 0.01
    assert "Left: nothing." in lesson.printed
    assert f"models: workshop-{SEAT}99-of-a-colleague: not tagged as this" in lesson.printed
    # Nobody said delete: the learner's own things are shown, and left as they were.
    assert results["own_before"] == results["own_after"] == 2, "a bucket, and an object in it"
    assert f"workshop clean --seat {SEAT} --target local" in lesson.printed


def test_a_seats_own_things_survive_the_lesson_and_go_when_somebody_says_so(lesson):
    """On the emulator of the lesson's run, started again: the cells of that section as they are."""
    with emulator(lesson.state) as running:
        s3 = running.client("s3")
        assert buckets(s3) == [OWN_BUCKET]
        content = s3.get_object(Bucket=OWN_BUCKET, Key="results.csv")["Body"].read()
        assert content == b"a week's work"
        try:
            values = own_seat(delete=True, target="local", seat=SEAT)
        finally:
            local_server.point_back()
        assert values["before"].count == 2 and values["after"].count == 0
        assert buckets(s3) == []
