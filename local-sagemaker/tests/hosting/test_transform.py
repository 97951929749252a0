"""Batch transform of a model without a framework: splitting, assembling, failing, stopping."""

import json

import pytest
from botocore.exceptions import ClientError
from emulator_harness import processes_with, until
from hosting_helpers import PATIENCE, TRIPLE, script

from local_sagemaker.pytest_plugin import BUCKET

JSON = "application/json"
LINES = TRIPLE.replace(
    "return json.loads(data)",
    "return [one for line in data.splitlines() for one in json.loads(line)]",
)


@pytest.fixture(scope="module")
def model(served):
    """A model that triples numbers: JSON, a list on each line."""
    return served.model("transform-model", script(LINES))


def out(served, name: str, path: str) -> str:
    return served.emulator.get(f"s3://{BUCKET}/{name}/{path}.out").decode()


def put(served, folder: str, **files: str) -> str:
    for name, text in files.items():
        served.emulator.put(f"{folder}/{name}.jsonl", text)
    return f"s3://{BUCKET}/{folder}/"


def test_a_record_at_a_time(served, model):
    uri = put(served, "single", a="[1]\n[2, 3]\n\n[4]", b="[5]\n")
    result = served.transform(
        "single-1", model, uri, BatchStrategy="SingleRecord", MaxConcurrentTransforms=4
    )
    assert result["TransformJobStatus"] == "Completed", result.get("FailureReason")
    assert result["TransformStartTime"] <= result["TransformEndTime"]
    assert out(served, "single-1", "a.jsonl") == "[3]\n[6, 9]\n[12]\n"
    assert out(served, "single-1", "b.jsonl") == "[15]\n"
    listed = served.api.list_transform_jobs(NameContains="single-1")["TransformJobSummaries"]
    assert [item["TransformJobStatus"] for item in listed] == ["Completed"]
    assert processes_with("transform/single-1") == []
    saved = served.emulator.state / "transforms" / "single-1"
    assert [path.name for path in saved.iterdir()] == ["record.json"]


def test_as_many_records_as_fit(served, model):
    records = [f"[{number}{' ' * 100_000}]" for number in range(25)]
    uri = put(served, "many", a="\n".join(records))
    result = served.transform("many-1", model, uri, MaxPayloadInMB=1)
    assert result["TransformJobStatus"] == "Completed", result.get("FailureReason")
    answers = [json.loads(line) for line in out(served, "many-1", "a.jsonl").splitlines()]
    assert [len(item) for item in answers] == [10, 10, 5]  # 10 records of 100 kB in 1 MB
    assert [item for answer in answers for item in answer] == [3 * number for number in range(25)]


def test_whole_objects(served, model):
    served.emulator.put("whole/deep/a.json", "[1, 2]")
    uri = f"s3://{BUCKET}/whole/"
    given = {"DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": uri}}}
    result = served.transform("whole-1", model, uri, TransformInput=given | {"ContentType": JSON})
    assert result["TransformJobStatus"] == "Completed", result.get("FailureReason")
    assert out(served, "whole-1", "deep/a.json") == "[3, 6]\n"


def test_one_object_fails_and_the_others_are_kept(served, model):
    uri = put(served, "fails", a="[1]", b="no json", c="[3]")
    result = served.transform("fails-1", model, uri)
    assert result["TransformJobStatus"] == "Failed"
    assert "fails/b.jsonl: Bad HTTP status received from algorithm: 500" in result["FailureReason"]
    assert "Expecting value" in result["FailureReason"]
    assert out(served, "fails-1", "a.jsonl") == "[3]\n"
    assert out(served, "fails-1", "c.jsonl") == "[9]\n"
    with pytest.raises(ClientError, match="NoSuchKey"):
        out(served, "fails-1", "b.jsonl")


def test_jobs_that_cannot_succeed(served, model):
    big = put(served, "big", a="[" + " " * (1024 * 1024) + "1]")
    result = served.transform("big-1", model, big, MaxPayloadInMB=1)
    assert result["TransformJobStatus"] == "Failed"
    assert "record 1 of" in result["FailureReason"] and "MaxPayloadInMB" in result["FailureReason"]
    result = served.transform("no-input-1", model, f"s3://{BUCKET}/nothing/")
    assert "No S3 objects found" in result["FailureReason"]
    broken = served.model("transform-broken", script("def model_fn(d): raise ValueError('never')"))
    result = served.transform("broken-1", broken, big)
    assert result["TransformJobStatus"] == "Failed" and "never" in result["FailureReason"]
    assert processes_with("transform/broken-1") == []


SOURCE = {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"s3://{BUCKET}/single/"}}
RECORDS = {"TransformInput": {"DataSource": SOURCE, "SplitType": "TFRecord"}}
WHOLE = {"TransformInput": {"DataSource": SOURCE}}
ZIPPED = {"TransformInput": {"DataSource": SOURCE, "CompressionType": "Gzip"}}
REFUSED = {
    "DataProcessing": ({"DataProcessing": {"JoinSource": "Input"}}, "DataProcessing"),
    "MaxPayloadInMB": ({"MaxPayloadInMB": 60, "MaxConcurrentTransforms": 2}, "must not be above"),
    "ModelName": ({"ModelName": "nobody"}, "Could not find model"),
    "enumeration": ({"BatchStrategy": "Some"}, "enum value set"),
    "SplitType": (RECORDS, "None and Line are"),
    "zipped": (ZIPPED, "unpack the objects"),
    "strategy": (WHOLE | {"BatchStrategy": "SingleRecord"}, "SingleRecord needs SplitType Line"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_requests_that_are_refused(served, model, name):
    changes, why = REFUSED[name]
    with pytest.raises(ClientError, match=why):
        served.begin_transform("refused-1", model, f"s3://{BUCKET}/single/", **changes)
    with pytest.raises(ClientError, match="Could not find requested job with name: refused-1"):
        served.api.describe_transform_job(TransformJobName="refused-1")


def test_stopping_and_a_name_that_is_taken(served):
    slow = LINES.replace("import json", "import json, time").replace(
        "return [model", "time.sleep(600); return [model"
    )
    name, uri = served.model("stopped-1", script(slow)), put(served, "stopping", a="[1]")
    served.begin_transform("stopped-1", name, uri)
    with pytest.raises(ClientError, match="must be unique"):
        served.begin_transform("stopped-1", name, uri)
    until(lambda: processes_with("transform/stopped-1"), PATIENCE)
    served.api.stop_transform_job(TransformJobName="stopped-1")
    assert served.ended("stopped-1")["TransformJobStatus"] == "Stopped"
    assert processes_with("transform/stopped-1") == []
    with pytest.raises(ClientError, match="transform job is in status Stopped"):
        served.api.stop_transform_job(TransformJobName="stopped-1")
    with pytest.raises(ClientError, match="NoSuchKey"):
        out(served, "stopped-1", "a.jsonl")
