"""DeleteTrainingJob: only what has ended, and then nothing of it is left."""

import io
import json
import tarfile
import time

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import FINAL, Endpoint, request
from local_sagemaker.jobs.manager import JobManager


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """An endpoint whose jobs nobody else counts."""
    one = Endpoint(tmp_path_factory.mktemp("state"))
    yield one
    one.down()


def ended(own, name, **changes):
    """A job that was stopped before its script began."""
    api = own.client("sagemaker")
    arn = api.create_training_job(**request(name, **changes))["TrainingJobArn"]
    api.stop_training_job(TrainingJobName=name)
    assert own.wait(name).status in FINAL
    return arn


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"]


def test_a_job_that_has_ended_can_be_deleted_and_its_name_used_again(own):
    api = own.client("sagemaker")
    ended(own, "gone", Tags=[{"Key": "lesson", "Value": "99"}])
    folder = own.state / "jobs" / "gone"
    assert folder.is_dir()
    api.delete_training_job(TrainingJobName="gone")
    assert not folder.exists()
    assert refusal(api.describe_training_job, TrainingJobName="gone") == "ValidationException"
    assert api.list_training_jobs(NameContains="gone")["TrainingJobSummaries"] == []
    arn = ended(own, "gone")
    assert api.list_tags(ResourceArn=arn)["Tags"] == []


def test_a_restart_does_not_bring_it_back(own):
    for name in ("before", "kept"):
        ended(own, name)
    own.client("sagemaker").delete_training_job(TrainingJobName="before")
    # What an endpoint that starts now would read.
    found = JobManager(own.state / "jobs", own.aws(), "processes", 1.0)
    assert "kept" in found.records and "before" not in found.records


def test_the_tags_of_a_deleted_job_are_gone_with_it(own):
    api = own.client("sagemaker")
    arn = ended(own, "tagged")
    api.delete_training_job(TrainingJobName="tagged")
    for call, more in [
        (api.list_tags, {}),
        (api.add_tags, {"Tags": [{"Key": "a", "Value": "b"}]}),
        (api.delete_tags, {"TagKeys": ["a"]}),
    ]:
        assert refusal(call, ResourceArn=arn, **more) == "ValidationException"


def test_a_job_that_is_not_there(own):
    api = own.client("sagemaker")
    assert refusal(api.delete_training_job, TrainingJobName="never") == "ResourceNotFound"
    assert refusal(api.delete_training_job, TrainingJobName="no_such") == "ValidationException"


def test_a_job_that_runs_is_kept(own):
    api, s3 = own.client("sagemaker"), own.client("s3")
    s3.create_bucket(Bucket="code")
    s3.put_object(Bucket="code", Key="source.tar.gz", Body=sleeper())
    where = json.dumps("s3://code/source.tar.gz")
    asked = {"sagemaker_program": '"wait.py"', "sagemaker_submit_directory": where}
    s3.create_bucket(Bucket="lessons-data")
    api.create_training_job(**request("runs", HyperParameters=asked))
    deadline = time.monotonic() + 180
    while api.describe_training_job(TrainingJobName="runs")["SecondaryStatus"] != "Training":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert refusal(api.delete_training_job, TrainingJobName="runs") == "ResourceInUse"
    api.stop_training_job(TrainingJobName="runs")
    assert own.wait("runs").status in FINAL
    api.delete_training_job(TrainingJobName="runs")
    assert not (own.state / "jobs" / "runs").exists()


def sleeper() -> bytes:
    """A source.tar.gz with a script that waits."""

    packed, script = io.BytesIO(), b"import time\n\ntime.sleep(600)\n"
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("wait.py")
        info.size = len(script)
        archive.addfile(info, io.BytesIO(script))
    return packed.getvalue()
