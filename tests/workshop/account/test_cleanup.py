"""A seat's things are found, deleted, and gone; nobody else's are touched."""

import datetime

import pytest
from emulator_harness import until
from seat_helpers import (
    ENDPOINT_LOGS,
    NOTEBOOK_LOGS,
    ROLE,
    Calls,
    fill,
    furnish,
    host,
    job,
    names_left,
    notebook,
    packed,
    quiet,
    stack,
    status,
    stream,
)

import workshop
from workshop.account import cleanup, resources, stacks
from workshop.account.prices import idle_price as price
from workshop.jobs.logs import LOG_GROUP
from workshop.jobs.session import Session

KINDS = [
    "endpoints",
    "endpoint configurations",
    "models",
    "image repositories",
    "log groups of endpoints",
    "log streams of training jobs",
    "records of training jobs",
    "objects",
    "stacks",
    "log streams of the notebook instance",
]

SERVES_SLOWLY = b"""
import time
print("begun", flush=True)
def model_fn(model_dir): return None
def transform_fn(model, data, content_type, accept): time.sleep(600)
"""


def test_a_look_finds_each_kind_with_its_size_and_cost_and_changes_nothing(furnished):
    session = workshop.session("local", seat=furnished.seat)
    calls = Calls(session)
    inventory = cleanup.find(session)
    assert calls.writes == [] and calls.made
    assert not inventory.unseen and not inventory.foreign
    assert inventory.kinds == KINDS
    (objects,) = inventory.by_kind("objects")
    assert objects.count == 5, "two versions, one more, its delete marker, one upload"
    assert objects.size == len(b"first") + len(b"second one") + 100
    assert "1 unfinished uploads" in objects.note
    assert objects.usd_per_month == pytest.approx(objects.size / 1e9 * price("s3").usd)
    (endpoint,) = inventory.by_kind("endpoints")
    assert endpoint.note == "2 x ml.m5.large"
    assert endpoint.usd_per_month == pytest.approx(2 * 730 * price("endpoint ml.m5.large").usd)
    (images,) = inventory.by_kind("image repositories")
    assert images.size == 10_000_000 and images.note == "1 image"
    assert images.usd_per_month == pytest.approx(0.01 * price("ecr").usd)
    by_name = {
        row.name.removeprefix(session.job_prefix): row for row in inventory.by_kind("stacks")
    }
    assert list(by_name) == ["notebook", "roles", "storage"], "the last one made goes first"
    assert by_name["notebook"].usd_per_month == pytest.approx(
        730 * price("notebook ml.t3.medium").usd
    )
    assert by_name["storage"].usd_per_month == 0
    assert inventory.usd_per_month == pytest.approx(
        sum(row.usd_per_month or 0 for row in inventory.owned)
    )


def test_the_table_says_what_is_not_known(furnished):
    table = cleanup.find(furnished).table()
    assert list(table.index) == KINDS
    assert table.loc["stacks", "how many"] == 3
    assert table.loc["log streams of training jobs", "bytes"] == "not told"
    assert table.loc["log streams of training jobs", "USD a month"] == "not known"


def test_all_is_deleted_and_a_second_run_changes_nothing(session):
    furnish(session)
    assert len(names_left(session)) > 8
    lines = []
    report = cleanup.clean(session, lines.append)
    assert report.refused == {} and report.nothing_left
    assert report.lines() == ["Left: nothing."]
    assert names_left(session) == [], "asked of the services themselves"
    assert sum("deleted" in line for line in lines) == len(lines) == len(report.done)
    calls = Calls(session)
    again = cleanup.clean(session, quiet)
    assert again.nothing_left and again.done == [] and calls.writes == []
    assert workshop.deploy(session, log=quiet)[0].change == "created", "one can begin again"


def test_a_name_alone_proves_nothing(session):
    prefix, api = session.job_prefix, session.client("sagemaker")
    host(session, "theirs", [{"Key": "workshop", "Value": "data-parallel"}])  # and no seat
    session.client("s3").create_bucket(Bucket=f"{prefix}theirs")
    session.client("s3").put_object(Bucket=f"{prefix}theirs", Key="a", Body=b"a")
    stack(session, "theirs", {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}, [])
    other = job(session, "theirs", tags=[])
    stream(session, LOG_GROUP, f"{prefix}unknown/algo-1-1")
    report = cleanup.clean(session, quiet)
    assert report.nothing_left
    foreign = {(row.kind, row.name): row.note for row in report.left.foreign}
    assert foreign == {
        ("endpoints", f"{prefix}theirs"): "not tagged as this seat's",
        ("endpoint configurations", f"{prefix}theirs"): "not tagged as this seat's",
        ("models", f"{prefix}theirs"): "not tagged as this seat's",
        ("log groups of endpoints", f"{ENDPOINT_LOGS}{prefix}theirs"): "not tagged as this seat's",
        ("log streams of training jobs", other): "not tagged as this seat's",
        ("log streams of training jobs", f"{prefix}unknown"): (
            "there is no training job of this name whose tags could tell"
        ),
        ("records of training jobs", other): "not tagged as this seat's",
        ("stacks", f"{prefix}theirs"): "not tagged as this seat's",
        ("buckets", f"{prefix}theirs"): "not tagged as this seat's",
    }
    assert f"Not touched: buckets: {prefix}theirs: not tagged as this seat's" in report.lines()
    left = set(names_left(session))
    assert {f"{prefix}theirs", other, f"{prefix}unknown/algo-1-1"} <= left
    assert session.client("s3").get_object(Bucket=f"{prefix}theirs", Key="a")
    assert api.describe_endpoint(EndpointName=f"{prefix}theirs")


def test_a_seat_whose_name_goes_on_is_another_seat(session):
    # No seat has a hyphen, but the cleaner does not trust in that.
    neighbour = Session("local", f"{session.seat}-b", session.boto_session)
    host(neighbour, "x", stacks.tags(neighbour.seat))
    notebook(neighbour)
    job(neighbour, "done")
    before = names_left(neighbour)
    host(session, "x", stacks.tags(session.seat))
    report = cleanup.clean(session, quiet)
    assert report.nothing_left and len(report.done) == 4
    assert report.left.foreign == [], "they are somebody's, and that is known"
    assert names_left(neighbour) == before


def test_a_job_that_runs_is_stopped_first(session):
    workshop.deploy(session, log=quiet)
    full = job(session, "runs", code=packed(session, "hello.py", b"import time; time.sleep(600)"))
    until(lambda: status(session, full) == "InProgress")
    (running,) = cleanup.find(session).by_kind("running training jobs")
    # 1680 s of max_run and 120 s to save: half an hour of one ml.m5.xlarge.
    assert running.note == "at most 0.12 USD until max_run ends it"
    lines = []
    report = cleanup.clean(session, lines.append)
    assert report.nothing_left and names_left(session) == []
    assert lines[0] == f"running training jobs: {full}: stopped"


def test_a_transform_job_that_runs_is_stopped_and_its_log_goes(session):
    """Its record cannot be deleted."""
    full, bucket = f"{session.job_prefix}transform", session.bucket
    model = packed(session, "code/inference.py", SERVES_SLOWLY)
    session.client("s3").put_object(Bucket=bucket, Key="in/a.json", Body=b"1")
    api, tags = session.client("sagemaker"), stacks.tags(session.seat)
    container = {"Image": "registry.invalid/a", "ModelDataUrl": model}
    api.create_model(ModelName=full, ExecutionRoleArn=ROLE, PrimaryContainer=container, Tags=tags)
    source = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{bucket}/in/"}}
    api.create_transform_job(
        TransformJobName=full,
        ModelName=full,
        TransformInput={"DataSource": source, "ContentType": "application/json"},
        TransformOutput={"S3OutputPath": f"s3://{bucket}/out"},
        TransformResources={"InstanceType": "ml.m5.large", "InstanceCount": 1},
        Tags=tags,
    )
    until(lambda: cleanup.find(session).by_kind("log streams of transform jobs"), seconds=120)
    (running,) = cleanup.find(session).by_kind("running transform jobs")
    assert (running.name, running.note) == (full, "costs until it ends")
    lines = []
    report = cleanup.clean(session, lines.append)
    assert report.nothing_left, report.lines()
    assert f"running transform jobs: {full}: stopped" in lines
    assert f"log streams of transform jobs: {full}: deleted" in lines
    job = api.describe_transform_job(TransformJobName=full)
    assert job["TransformJobStatus"] == "Stopped"
    assert cleanup.clean(session, quiet).done == []


def test_more_objects_than_one_request_takes(session, monkeypatch):
    workshop.deploy(session, log=quiet)
    fill(session)
    monkeypatch.setattr(resources, "BATCH", 2)
    calls = Calls(session)
    assert cleanup.clean(session, quiet).nothing_left
    assert calls.made.count("DeleteObjects") == 2  # four of them; the upload is aborted
    assert calls.made.count("AbortMultipartUpload") == 1


def test_a_bucket_that_no_stack_holds_and_one_in_another_region(session):
    s3, tagged = session.client("s3"), {"TagSet": stacks.tags(session.seat)}
    old, far = (f"{session.job_prefix}{name}" for name in ("old", "far"))
    where = {"LocationConstraint": "eu-west-1"}
    s3.create_bucket(Bucket=old)
    s3.create_bucket(Bucket=far, CreateBucketConfiguration=where)
    for name in (old, far):
        s3.put_bucket_tagging(Bucket=name, Tagging=tagged)
        s3.put_object(Bucket=name, Key="a", Body=b"a")
    report = cleanup.clean(session, quiet)
    assert [(row.kind, row.name) for row in report.done] == [("objects", old), ("buckets", old)]
    assert report.nothing_left and names_left(session) == [far]
    (foreign,) = report.left.foreign
    note = "it is in eu-west-1: clean that region too, with AWS_DEFAULT_REGION"
    assert (foreign.name, foreign.note) == (far, note)


def test_a_notebook_instance_that_bears_the_seats_name_alone(session, monkeypatch):
    name = session.job_prefix.rstrip("-")  # as cloudformation/notebook.yaml calls it; moto may not
    tags = {tag["Key"]: tag["Value"] for tag in stacks.tags(session.seat)}
    monkeypatch.setattr(resources.NotebookLogs, "owners", lambda *_: {name: tags})
    for last in ("jupyter.log", "LifecycleConfigOnStart"):
        stream(session, NOTEBOOK_LOGS, f"{name}/{last}")
    stream(session, NOTEBOOK_LOGS, f"{name}x/jupyter.log")
    (streams,) = cleanup.find(session).owned
    assert (streams.name, streams.count) == (name, 2)
    report = cleanup.clean(session, quiet)
    assert report.nothing_left and report.left.foreign == []
    left = session.client("logs").describe_log_streams(logGroupName=NOTEBOOK_LOGS)["logStreams"]
    names = {row["logStreamName"] for row in left}
    assert f"{name}x/jupyter.log" in names and f"{name}/jupyter.log" not in names


# What is billed by the hour is ended if it is this run's


def test_what_was_made_since_is_ended_and_what_was_there_stays(session):
    host(session, "made", stacks.tags(session.seat))
    host(session, "theirs", [{"Key": "workshop", "Value": "data-parallel"}])  # and no seat
    name, now, lines = f"{session.job_prefix}made", datetime.datetime.now(datetime.UTC), []
    cleanup.end_what_runs(session, now + datetime.timedelta(minutes=1), lines.append)
    assert lines == [] and name in names_left(session), "it is older than that"
    cleanup.end_what_runs(session, now - datetime.timedelta(days=1), lines.append)
    assert lines == [f"endpoints: {name}: deleted"]
    assert f"{session.job_prefix}theirs" in names_left(session), "another seat's"
