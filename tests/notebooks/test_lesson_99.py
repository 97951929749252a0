"""Lesson 99 deletes what it made itself, and a seat's own only where it is told."""

from types import SimpleNamespace

import boto3
import jupytext
import pytest
from markdown_tables import LESSONS

import workshop
from local_sagemaker import daemon
from notebook_harness import SMALLER, errors_and_warnings, text_of
from workshop import cleaning, endpoint, stacks
from workshop.notebooks.lessons import chosen

pytestmark = pytest.mark.slow
OWN = f"workshop-{SMALLER['seat']}-own"
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/workshop"


@pytest.fixture
def client(own_state):
    """A function that makes a client for the tests' endpoint, once it is up."""

    def make(service):
        where = daemon.environment(own_state, daemon.running(own_state).port)
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        keys = {name.lower(): where[name] for name in names}
        url = where["AWS_ENDPOINT_URL"]
        return boto3.client(service, endpoint_url=url, region_name="us-east-1", **keys)

    return make


@pytest.fixture
def s3(client):
    """A function that makes a client for S3, once the tests' endpoint is up."""
    return lambda: client("s3")


def make_own(client):
    """A bucket of the learner's seat, with something in it."""
    tags = [{"Key": "workshop", "Value": "data-parallel"}]
    tags.append({"Key": "seat", "Value": SMALLER["seat"]})
    client.create_bucket(Bucket=OWN)
    client.put_bucket_tagging(Bucket=OWN, Tagging={"TagSet": tags})
    client.put_object(Bucket=OWN, Key="results.csv", Body=b"a week's work")


def buckets(client):
    return [one["Name"] for one in client.list_buckets()["Buckets"]]


def own_seat(**parameters):
    """Run the code of the section `Your own seat`; return what it has set."""
    cells = jupytext.read(LESSONS["99"]).cells
    heads = [cell.source.startswith("## Your own seat") for cell in cells]
    first = heads.index(True) + 1
    names = {"workshop": workshop, "cleaning": cleaning, **parameters}
    for cell in cells[first : first + 2]:
        assert cell.cell_type == "code"
        exec(cell.source, names)
    return names


@pytest.mark.usefixtures("run_lesson")  # the endpoint is up
def test_a_run_that_was_broken_off_can_be_run_again(client):
    """The cell that makes entries of models makes those that are not there, each once."""
    (cell,) = (one for one in jupytext.read(LESSONS["99"]).cells if "create_model(" in one.source)
    api, prefix = client("sagemaker"), "workshop-broken-99-"
    names = {
        "session": SimpleNamespace(client=lambda _: api, job_prefix=prefix, role=ROLE),
        "estimator": SimpleNamespace(training_image_uri=lambda: "image"),
        "result": SimpleNamespace(model="s3://bucket/model.tar.gz"),
        "stacks": stacks,
        "practice": "broken-99",
    }
    made = [prefix + "digits", prefix + "of-a-colleague"]
    # AWS refuses a name that is there; the endpoint writes over it. So the calls are counted.
    asked = []
    api.meta.events.register(
        "before-call.sagemaker.CreateModel", lambda params, **_: asked.append(params["body"])
    )
    for _ in range(2):
        exec(cell.source, names)
        assert len(asked) == 2, "a name that was there was asked for again"
        there = [one["ModelName"] for one in api.list_models(NameContains=prefix)["Models"]]
        assert sorted(there) == made
    api.delete_model(ModelName=made[0])
    exec(cell.source, names)
    assert len(asked) == 3 and api.describe_model(ModelName=made[0]), "broken off between the two"
    for name in made:
        api.delete_model(ModelName=name)


def test_it_is_the_last():
    assert [path.stem for path in chosen(())][-1] == "99_clean_up", "`workshop run` takes all"


@pytest.mark.timeout(300)
def test_lesson_99(run_lesson, s3):
    make_own(s3())
    found, notebook = run_lesson("99")
    assert errors_and_warnings(notebook) == []
    # The data are seven files with their manifest; the job adds its code and its model.
    assert found["kinds"].pop("objects") >= 7
    assert found["kinds"] == {
        "models": 1,
        "log streams of training jobs": 1,
        "records of training jobs": 1,
        "stacks": 2,
    }
    assert found["done"] == 6 and found["left"] == 0 and found["again"] == 0
    assert found["jobs_left"] == 0 and found["stranger_survived"] is True
    assert found["dearest"] == "endpoint ml.m5.large"
    assert 0 < found["usd_per_month"] < 0.01
    printed = text_of(notebook)
    assert "Left: nothing." in printed
    assert f"models: workshop-{SMALLER['seat']}-99-of-a-colleague: not tagged as this" in printed
    # Nobody said delete: the learner's own things are shown, and as they were.
    assert found["own_before"] == found["own_after"] == 2, "a bucket, and an object in it"
    assert f"workshop clean --seat {SMALLER['seat']} --target local" in printed
    assert buckets(s3()) == [OWN]
    assert s3().get_object(Bucket=OWN, Key="results.csv")["Body"].read() == b"a week's work"

    # And where somebody says it: the cells of that section again, as they are.
    try:
        said = own_seat(delete=True, target="local", seat=SMALLER["seat"])
    finally:
        endpoint.point_back()
    assert said["before"].count == 2 and said["after"].count == 0
    assert buckets(s3()) == []
