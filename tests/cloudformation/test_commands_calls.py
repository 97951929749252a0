"""Every AWS call of the kit's commands and of the instance's own scripts, against its policies."""

import pytest
import stacks_harness
from aws_calls import ACCOUNT, REGION, SAGEMAKER, Call, World
from deployed_policies import standing
from moto.core import DEFAULT_ACCOUNT_ID
from policy_evaluator import Request

from workshop.account import preflight, stacks
from workshop.account.prices import hourly_cost
from workshop.course import run
from workshop.jobs import logs, vpc

SEAT = "ann"


@pytest.fixture(scope="module")
def seat():
    with standing(SEAT, stacks_of=stacks.ALL) as (result,):
        yield result


def job(network):
    return preflight.JobConfiguration(
        framework="tensorflow",
        framework_version="2.12.0",
        py_version="py310",
        instance_type="ml.c5.xlarge",
        instance_count=2,
        subnets=tuple(network["subnets"]),
        security_group_ids=tuple(network["security_group_ids"]),
    )


COMMANDS = {
    "workshop stacks status": lambda session: [
        hourly_cost(session, row) for row in stacks.status(session)
    ],
    "workshop preflight": lambda session: preflight.ask(job(vpc.network(session)), session),
    "the network of lesson 08": lambda session: vpc.network_from_stack(session, serving=True),
    "workshop run, interrupted": lambda session: run._end_what_costs(
        "aws", {}, run.datetime.datetime.now(run.datetime.UTC)
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_notebook_may_do_what_the_command_does(seat, name, monkeypatch):
    calls, world, refused = [], World(), []
    session = stacks_harness.recording(SEAT, calls, target="aws")
    monkeypatch.setattr(run, "session", lambda *_: session)
    COMMANDS[name](session)
    assert calls
    for service, operation, request in calls:
        if "NotebookInstanceName" in request:  # moto makes up another than the template's
            request["NotebookInstanceName"] = f"workshop-{SEAT}"
        refused += seat.refused(
            "NotebookRole", world.permissions_for(Call(service, operation, request))
        )
    assert refused == []


def test_the_seat_stands_in_motos_account():
    assert DEFAULT_ACCOUNT_ID == ACCOUNT and stacks_harness.REGION == REGION


def test_the_notebook_may_do_what_its_own_scripts_do(seat):
    """set_up.sh: aws s3 cp; idle_stop.py; and SageMaker, which writes the scripts' log."""
    bucket, group = seat.outputs["BucketName"], "/aws/sagemaker/NotebookInstances"
    stream = {"logGroupName": group, "logStreamName": f"workshop-{SEAT}/LifecycleConfigOnStart"}
    calls = [
        Call("s3", "HeadObject", {"Bucket": bucket, "Key": "kit/kit.tar.gz"}),
        Call("s3", "GetObject", {"Bucket": bucket, "Key": "kit/kit.tar.gz"}),
        Call("logs", "CreateLogGroup", {"logGroupName": group}),
        Call("logs", "DescribeLogStreams", {"logGroupName": group}),
        Call("logs", "CreateLogStream", stream),
        Call("logs", "PutLogEvents", stream),
    ]
    requests = [row for call in calls for row in World().permissions_for(call)]
    seat_ = f"{SAGEMAKER}:notebook-instance/workshop-{SEAT}"
    requests += [Request("sagemaker:StopNotebookInstance", seat_)]
    assert seat.refused("NotebookRole", requests) == []
    assert logs.LOG_GROUP == "/aws/sagemaker/TrainingJobs"
