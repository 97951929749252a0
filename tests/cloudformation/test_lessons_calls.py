"""Every AWS call that a lesson makes, against the policies of the kit's own notebook instance.

The lessons run once for all tests, on the emulator; recording/ notes their calls.
What a lesson does here alone, or as the owner of an account, is named below with its reason.
"""

import json

import pytest
from aws_calls import Call, World, read, requests_of_job
from course_text import lessons
from deployed_policies import standing
from lesson_runs import SEAT, lesson_run

from workshop.jobs.job_preview import NOBODY

__all__ = ["lesson_run"]
pytestmark = [pytest.mark.reads_lessons, pytest.mark.timeout(900)]
LESSONS = sorted(lessons())
STACKS = {"CreateStack", "UpdateStack", "DeleteStack"}
# (service, operation) that the notebook instance's role is not for, and why.
BY_THE_OWNER = {("cloudformation", name) for name in STACKS}  # from another machine
# boto3 looks for the creation date of the SDK's bucket, and goes on where it may not (bucket_load
# in boto3/s3/inject.py); then the SDK asks for the bucket alone, by HeadBucket.
GOES_ON_WITHOUT = {("s3", "ListBuckets")}
ALL_OF_A_SEAT = "99"  # deletes a seat with its stacks: its own text says who may


@pytest.fixture(scope="module")
def seat():
    with standing(SEAT) as (listed,):
        yield listed


def test_the_sdk_may_look_at_its_bucket(seat):
    head = Call("s3", "HeadBucket", {"Bucket": seat.outputs["BucketName"]})
    assert seat.refused("NotebookRole", World().permissions_for(head)) == []


def as_deployed(call: Call, seat) -> Call:
    """The call with this seat's role: the stack of the recording gave its own another ending."""
    request = dict(call.request)
    for key in {"RoleArn", "ExecutionRoleArn"} & set(request):
        assert f"workshop-{SEAT}-roles-TrainingRole-" in request[key]
        request[key] = seat.outputs["TrainingRoleArn"]
    return Call(call.service, call.operation, request)


def sent(run) -> list[Call]:
    """The calls that a lesson sends to AWS.

    Without those that a preview session kept (lesson 09): they name a bucket or a role of an
    account that nobody has. And without jobs on links `by-type`, which lesson 06 starts here alone.
    """
    placeholders = (f"-{NOBODY}-", f"::{NOBODY}:", '"by-type"')
    calls = [(call, json.dumps(call.request, default=str)) for call in read(run.calls)]
    return [call for call, text in calls if not any(word in text for word in placeholders)]


@pytest.mark.parametrize("number", sorted(set(LESSONS) - {ALL_OF_A_SEAT}))
def test_the_notebook_may_do_what_the_lesson_does_and_its_jobs_what_sagemaker_does_for_them(
    number, lesson_run, seat
):
    calls, world, refused = sent(lesson_run(number)), World(), []
    for call in (as_deployed(call, seat) for call in calls):
        requests = world.permissions_for(call)
        if (call.service, call.operation) not in BY_THE_OWNER | GOES_ON_WITHOUT:
            refused += seat.refused("NotebookRole", requests)
        if call.operation == "CreateTrainingJob":
            refused += seat.refused("TrainingRole", requests_of_job(call.request))
    assert refused == []
    assert len(calls) >= 1 or number in ("01", "02"), "nothing was recorded"


def test_lesson_08_takes_its_endpoint_away_in_the_cell_after_its_last_use(lesson_run):
    operations = [call.operation for call in read(lesson_run("08").calls)]
    last = len(operations) - operations[::-1].index("InvokeEndpoint")
    assert "DeleteEndpoint" in operations[last : last + 6]
    assert operations.index("DeleteEndpoint") < operations.index("CreateTransformJob")
    assert operations.count("DeleteModel") == operations.count("CreateModel")


def test_all_that_lesson_08_creates_bears_the_seats_tags(lesson_run):
    made = [call for call in read(lesson_run("08").calls) if call.operation.startswith("Create")]
    ours = [call for call in made if call.service == "sagemaker"]
    assert {call.operation for call in ours} >= {"CreateModel", "CreateTransformJob"}
    for call in ours:
        assert {"Key": "seat", "Value": SEAT} in call.request.get("Tags", []), json.dumps(
            call.request
        )
