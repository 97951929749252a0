"""The requests of every lesson's jobs: right for AWS, and the local ones but for a few names."""

import json
import os
import re
import socket
from collections import Counter
from functools import cache

import botocore.session
import pytest
from botocore.validate import ParamValidator
from click.testing import CliRunner
from job_harness import estimator
from sagemaker import image_uris

from local_sagemaker import daemon
from local_sagemaker.server.validation import check as check_as_the_service
from workshop.account import preflight
from workshop.cli import main
from workshop.requests import build, placeholders, recording_session
from workshop.teaching.plan import plan

JOBS = plan()["jobs"]
LESSONS = [name for name in JOBS if isinstance(JOBS[name], list)]
# Links that are narrowed, and what stands in for SMDDP, are to be had on the local endpoint alone.
MORE_LOCALLY = {"06", "07"}
# Of a job's name, and of the place of its checkpoints, which has random letters too.
TIME = re.compile(r"\d{4}(?:-\d\d){5}-(?:[0-9a-f]{8}|\d{3})")
BUCKET, ROLE, IMAGE, KIND = "<bucket>", "<role>", "<image>", "<instance type>"


@cache
def on_aws(lesson: str):
    """The jobs of a lesson for AWS. Built once: it takes seconds."""
    return build(lesson, "aws", opened=recording_session("aws", region="us-east-1"))


@pytest.fixture(autouse=True)
def nobody(clean_aws):
    """No credentials and no endpoint are seen."""


@pytest.mark.parametrize("lesson", LESSONS)
def test_all_jobs_of_the_plan_are_found(lesson):
    planned = Counter()
    for one in JOBS[lesson]:
        planned[one["instance_type"], one["instance_count"]] += one["number"]
    resources = [one.request["ResourceConfig"] for one in on_aws(lesson)]
    assert Counter((one["InstanceType"], one["InstanceCount"]) for one in resources) == planned


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_request_for_aws_is_valid(lesson):
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    for job in on_aws(lesson):
        report = ParamValidator().validate(job.request, shape)
        assert not report.has_errors(), f"{job.name}: {report.generate_report()}"
        check_as_the_service("CreateTrainingJob", job.request)  # lengths, patterns, enumerations


@pytest.mark.parametrize("lesson", LESSONS)
def test_preflight_has_nothing_against_a_job(lesson):
    for job in on_aws(lesson):
        found = preflight.check(preflight.of(job.estimator, job.name))
        assert preflight.all_ok(found), [one for one in found if one.ok is False]


@pytest.mark.parametrize("lesson", LESSONS)
def test_the_image_is_the_one_that_the_sdk_resolves(lesson):
    for job in on_aws(lesson):
        one = job.estimator
        expected = image_uris.retrieve(
            one._framework_name,
            "us-east-1",
            version=one.framework_version,
            py_version=one.py_version,
            instance_type=one.instance_type,
            image_scope="training",
        )
        assert job.request["AlgorithmSpecification"]["TrainingImage"] == expected
        assert re.fullmatch(r"\d{12}\.dkr\.ecr\.us-east-1\.amazonaws\.com/\S+:\S+", expected)


def normalised(request: dict, outputs: dict[str, str]) -> dict:
    """A request with times, bucket, role, image and instance type as words."""
    text = TIME.sub("<time>", json.dumps(request))
    text = text.replace(outputs["TrainingRoleArn"], ROLE).replace(outputs["BucketName"], BUCKET)
    found = json.loads(text)
    found["AlgorithmSpecification"]["TrainingImage"] = IMAGE
    found["ResourceConfig"]["InstanceType"] = KIND
    return found


def differences(one, other, path: str = "") -> dict[str, tuple]:
    """path -> the two values, where they differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        found = {}
        for key in sorted({*one, *other}):
            found |= differences(one.get(key), other.get(key), f"{path}.{key}".lstrip("."))
        return found
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        found = {}
        for number, pair in enumerate(zip(one, other, strict=True)):
            found |= differences(*pair, f"{path}[{number}]")
        return found
    return {} if one == other else {path: (one, other)}


@pytest.mark.horovod  # without it the Horovod lessons run a stand-in here, and not on AWS
@pytest.mark.parametrize("lesson", LESSONS)
def test_on_aws_it_is_the_local_request_but_for_names(lesson, session):
    local = build(lesson, "local", opened=recording_session("local", outputs=session.outputs))
    twins = {job.name: job for job in local}
    assert len(twins) == len(local) and {job.name for job in on_aws(lesson)} <= set(twins)
    assert len(local) == len(on_aws(lesson)) or lesson in MORE_LOCALLY
    for there in on_aws(lesson):
        here = twins[there.name]
        print(f"lesson {lesson}, {here.name}: local and AWS differ in")
        for path, (one, other) in differences(here.request, there.request).items():
            print(f"  {path}\n    {one}\n    {other}")
        aws = placeholders("me", "us-east-1")
        assert normalised(here.request, session.outputs) == normalised(there.request, aws)
        assert here.request["RoleArn"] != there.request["RoleArn"]


def test_the_recorded_request_is_the_one_that_is_sent(session):
    """One estimator recorded, and one really sent: the same bytes but for the time."""
    opened, sent = recording_session("local", seat="tests", outputs=session.outputs), []
    estimator(opened.session, "same").fit(wait=False)
    events = session.sagemaker_session.sagemaker_client.meta.events
    events.register("before-send.sagemaker.CreateTrainingJob", lambda request, **_: keep(request))

    def keep(request) -> None:  # it answers nothing, so the request goes on
        sent.append(json.loads(request.body))

    real = estimator(session, "same")
    real.fit(wait=False)
    session.client("sagemaker").stop_training_job(TrainingJobName=real.latest_training_job.name)
    (recorded,) = opened.recorder.requests
    (received,) = sent
    assert TIME.sub("", json.dumps(recorded)) == TIME.sub("", json.dumps(received))


def test_nothing_is_needed_and_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKSHOP_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://192.0.2.1")
    asked = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: asked.append(host))
    result = CliRunner().invoke(main, ["request", "00"])
    assert result.exit_code == 0, result.output
    (request,) = json.loads(result.output).values()
    assert request["RoleArn"].startswith("arn:aws:iam::" + "0" * 12)
    assert asked == [], "something looked for a host"
    assert os.environ["AWS_PROFILE"] == "no-such-profile", "the shell's variables are back"
    assert daemon.running(tmp_path / "state") is None and not (tmp_path / "state").exists()


def test_one_job_by_its_number_is_the_bare_request():
    result = CliRunner().invoke(main, ["request", "01", "1", "--target", "aws"])
    assert json.loads(result.output)["TrainingJobName"].startswith("workshop-me-channels-")


def test_a_parameter_and_a_region_are_taken_over():
    options = ["--target", "aws", "--region", "eu-central-1", "-p", "epochs=3", "--seat", "anna"]
    result = CliRunner().invoke(main, ["request", "00", "first", *options])
    request = json.loads(result.output)
    assert request["HyperParameters"]["epochs"] == "3"
    assert ".eu-central-1." in request["AlgorithmSpecification"]["TrainingImage"]
    assert request["TrainingJobName"].startswith("workshop-anna-first-")


def test_with_stacks_it_has_their_names(session, own_endpoint):
    result = CliRunner().invoke(main, ["request", "00", "1", "--stacks", "--seat", "tests"])
    assert result.exit_code == 0, result.output
    request = json.loads(result.output)
    assert request["RoleArn"] == session.role
    assert request["OutputDataConfig"]["S3OutputPath"] == f"s3://{session.bucket}/jobs"


def test_stacks_that_are_not_there_are_named(own_endpoint):
    result = CliRunner().invoke(main, ["request", "00", "--stacks", "--seat", "nobody"])
    assert result.exit_code == 2 and "workshop-nobody-storage is not there" in result.output


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["88"], "No lesson 88"),
        (["00", "second"], "no job 'second'. It has: 1 'first'"),
        (["00", "2"], "no job '2'"),
        (["00", "-p", "epoch=3"], "no parameter epoch"),
        (["00", "--seat", "A B"], "seat is 'A B'"),
        (["00", "--target", "moon"], "Invalid value for '--target'"),
    ],
)
def test_wrong_use_has_status_2_and_a_sentence(arguments, said):
    result = CliRunner().invoke(main, ["request", *arguments])
    assert result.exit_code == 2 and said in result.output
