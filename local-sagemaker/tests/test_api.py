"""Jobs described, listed, stopped, tagged and deleted, as clients see them."""

import datetime
from concurrent.futures import ThreadPoolExecutor

import pytest
from botocore.exceptions import ClientError
from emulator_harness import begin_and_stop, command_request, request, until_status

from local_sagemaker.pytest_plugin import FINAL


@pytest.fixture(scope="module")
def listed(emulator):
    """The names of three jobs that were stopped at their beginning, the oldest first."""
    names = ["listed-b", "listed-a", "listed-c"]
    for name in names:
        begin_and_stop(emulator, name, Tags=[{"Key": "lesson", "Value": "05"}])
    for name in names:
        assert emulator.wait(name).status == "Stopped"
    return names


def names(page: dict) -> list[str]:
    return [job["TrainingJobName"] for job in page["TrainingJobSummaries"]]


@pytest.mark.parametrize("call", ["describe_training_job", "stop_training_job"])
def test_a_job_that_does_not_exist(api, call):
    message = r"\(ValidationException\).*Requested resource not found"
    with pytest.raises(ClientError, match=message):
        getattr(api, call)(TrainingJobName="unheard-of")


def test_list_sorts(api, listed):
    ours = {"NameContains": "LISTED-"}
    assert names(api.list_training_jobs(**ours)) == listed[::-1]
    oldest_first = api.list_training_jobs(**ours, SortBy="CreationTime", SortOrder="Ascending")
    assert names(oldest_first) == listed
    by_name = api.list_training_jobs(**ours, SortBy="Name", SortOrder="Ascending")
    assert names(by_name) == sorted(listed)


def test_list_filters(api, listed):
    ours = {"NameContains": "listed-"}
    assert names(api.list_training_jobs(**ours, StatusEquals="Completed")) == []
    assert len(names(api.list_training_jobs(**ours, StatusEquals="Stopped"))) == 3
    middle = api.describe_training_job(TrainingJobName=listed[1])["CreationTime"]
    assert names(api.list_training_jobs(**ours, CreationTimeAfter=middle))[0] == listed[2]
    before = middle - datetime.timedelta(milliseconds=1)
    assert names(api.list_training_jobs(**ours, CreationTimeBefore=before)) == listed[:1]
    assert names(api.list_training_jobs(**ours, WarmPoolStatusEquals="Available")) == []


@pytest.mark.parametrize(
    ("filters", "letters"),
    [
        ({"TrainingJobName": "listed-a"}, "a"),
        ({"Tags.lesson": "05", "EnableManagedSpotTraining": "false"}, "abc"),
        ({"ResourceConfig.InstanceCount": "7", "Tags.lesson": "05"}, ""),
        ({"ModelArtifacts.S3ModelArtifacts": "s3://b/none"}, ""),  # register()'s
    ],
)
def test_search_finds_jobs_by_their_properties(api, listed, filters, letters):
    conditions = [{"Name": k, "Operator": "Equals", "Value": v} for k, v in filters.items()]
    response = api.search(Resource="TrainingJob", SearchExpression={"Filters": conditions})
    jobs = [result["TrainingJob"] for result in response["Results"]]
    # The emulator is shared: other tests' jobs are there too.
    jobs = [job for job in jobs if job["TrainingJobName"].startswith("listed-")]
    assert {job["TrainingJobName"] for job in jobs} == {f"listed-{letter}" for letter in letters}
    assert all(job["Tags"] == [{"Key": "lesson", "Value": "05"}] for job in jobs)


def test_search_compares_for_equality_only(api):
    condition = {"Name": "CreationTime", "Operator": "LessThan", "Value": "2020-01-01T00:00:00Z"}
    with pytest.raises(ClientError, match="compares for equality only"):
        api.search(Resource="TrainingJob", SearchExpression={"Filters": [condition]})


def test_list_pages(api, listed):
    pages = list(
        api.get_paginator("list_training_jobs").paginate(
            NameContains="listed-", PaginationConfig={"PageSize": 2}
        )
    )
    assert [len(names(page)) for page in pages] == [2, 1]
    assert [name for page in pages for name in names(page)] == listed[::-1]


@pytest.mark.parametrize("token", ["rubbish", "====", "-2", "é"])
def test_a_token_that_is_none(api, token):
    with pytest.raises(ClientError, match=r"\(ValidationException\).*NextToken is not one"):
        api.list_training_jobs(NextToken=token)


def test_tags_of_a_job(api, listed):
    arn = api.describe_training_job(TrainingJobName="listed-a")["TrainingJobArn"]
    assert api.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "lesson", "Value": "05"}]
    api.add_tags(ResourceArn=arn, Tags=[{"Key": "lesson", "Value": "06"}, _tag("owner", "me")])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("lesson", "06"), _tag("owner", "me")]
    api.delete_tags(ResourceArn=arn, TagKeys=["lesson", "unheard-of"])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("owner", "me")]


def _tag(key: str, value: str) -> dict:
    return {"Key": key, "Value": value}


def test_tags_of_a_model_are_motos(api):
    arn = api.create_model(ModelName="m", ExecutionRoleArn=request("x")["RoleArn"])["ModelArn"]
    api.add_tags(ResourceArn=arn, Tags=[_tag("lesson", "08")])
    assert api.list_tags(ResourceArn=arn)["Tags"] == [_tag("lesson", "08")]
    api.delete_tags(ResourceArn=arn, TagKeys=["lesson"])
    assert api.list_tags(ResourceArn=arn)["Tags"] == []


def test_listing_while_jobs_begin(emulator, api):
    """No 500 when the list changes under the reader's hands; every job is on it in the end."""
    with ThreadPoolExecutor(4) as pool:
        made = [pool.submit(begin_and_stop, emulator, f"crowd-{number}") for number in range(6)]
        listings = [pool.submit(api.list_training_jobs, MaxResults=100) for _ in range(20)]
        for future in made + listings:
            future.result()  # raises what a call was refused with
    assert len(names(api.list_training_jobs(NameContains="crowd-"))) == 6


def ended(emulator, name, **changes):
    """A job that was stopped before its script began; its ARN."""
    arn = begin_and_stop(emulator, name, **changes)
    assert emulator.wait(name).status in FINAL
    return arn


def refusal(call, **arguments):
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    return caught.value.response["Error"]["Code"]


def test_a_job_that_has_ended_can_be_deleted_and_its_name_used_again(emulator, api):
    ended(emulator, "gone", Tags=[{"Key": "lesson", "Value": "99"}])
    folder = emulator.state / "jobs" / "gone"
    assert folder.is_dir()
    api.delete_training_job(TrainingJobName="gone")
    assert not folder.exists()
    assert refusal(api.describe_training_job, TrainingJobName="gone") == "ValidationException"
    assert api.list_training_jobs(NameContains="gone")["TrainingJobSummaries"] == []
    arn = ended(emulator, "gone")
    assert api.list_tags(ResourceArn=arn)["Tags"] == []


def test_the_tags_of_a_deleted_job_are_gone_with_it(emulator, api):
    arn = ended(emulator, "tagged")
    api.delete_training_job(TrainingJobName="tagged")
    for call, extra in [
        (api.list_tags, {}),
        (api.add_tags, {"Tags": [{"Key": "a", "Value": "b"}]}),
        (api.delete_tags, {"TagKeys": ["a"]}),
    ]:
        assert refusal(call, ResourceArn=arn, **extra) == "ValidationException"


def test_a_job_that_is_not_there(api):
    assert refusal(api.delete_training_job, TrainingJobName="never") == "ResourceNotFound"
    assert refusal(api.delete_training_job, TrainingJobName="no_such") == "ValidationException"


@pytest.mark.namespaces
def test_a_job_that_runs_is_kept(emulator, api):
    api.create_training_job(**command_request("runs", ["sleep", "600"]))
    until_status(emulator, "runs", "Training")
    assert refusal(api.delete_training_job, TrainingJobName="runs") == "ResourceInUse"
    api.stop_training_job(TrainingJobName="runs")
    assert emulator.wait("runs").status in FINAL
    api.delete_training_job(TrainingJobName="runs")
    assert not (emulator.state / "jobs" / "runs").exists()
