"""The list of the lessons' jobs: its requests are right for AWS.

That the list is what the lessons send is tested where lessons are executed: tests/notebooks.
"""

import os
import re
import socket
from pathlib import Path

import botocore.session
import pytest
from botocore.validate import ParamValidator

from local_sagemaker import daemon
from local_sagemaker.protocol.validation import check as check_as_the_service
from workshop.account import preflight
from workshop.jobs.job_preview import preview, preview_session
from workshop.jobs.lesson_jobs import JOBS, lesson_jobs, lesson_parameters

# SageMaker Debugger takes no new customers since 2026-07-30, and the SDK adds it by itself.
DEBUGGER = {"DebugHookConfig", "DebugRuleConfigurations", "ProfilerRuleConfigurations"}


@pytest.fixture(autouse=True)
def nobody(clean_aws):
    """No credentials and no endpoint are seen."""


@pytest.mark.parametrize("lesson", JOBS)
def test_the_requests_of_a_lesson_are_valid_and_say_what_the_list_says(lesson):
    model = botocore.session.get_session().get_service_model("sagemaker")
    shape = model.operation_model("CreateTrainingJob").input_shape
    jobs = lesson_jobs(lesson)
    assert len(jobs) == len({job.name for job in jobs}) >= 1
    previewed = preview(jobs, preview_session("aws", region="us-east-1"))
    for job, built in zip(jobs, previewed, strict=True):
        request = built.request
        assert request["ResourceConfig"]["InstanceType"] == job.instance_type
        assert request["ResourceConfig"]["InstanceCount"] == job.instance_count
        assert request["StoppingCondition"]["MaxRuntimeInSeconds"] == job.max_run
        channels = {channel["ChannelName"] for channel in request.get("InputDataConfig", [])}
        assert channels == set(job.channels)
        assert ("VpcConfig" in request) is job.in_vpc
        assert request.get("EnableManagedSpotTraining", False) is job.spot
        image = request["AlgorithmSpecification"]["TrainingImage"]
        assert re.fullmatch(rf"\d{{12}}\.dkr\.ecr\.us-east-1\.\S+:{job.version}-\S+", image)
        assert Path(built.estimator.source_dir, built.estimator.entry_point).is_file()
        report = ParamValidator().validate(request, shape)
        assert not report.has_errors(), f"{job.name}: {report.generate_report()}"
        check_as_the_service("CreateTrainingJob", request)  # lengths, patterns, enumerations
        assert not DEBUGGER & set(request), job.name
        assert request["ProfilerConfig"] == {"DisableProfiler": True}, job.name
        configuration = preflight.JobConfiguration.from_estimator(built.estimator, job.name)
        findings = preflight.check(configuration)
        assert preflight.all_ok(findings), [finding for finding in findings if finding.ok is False]


def test_parameters_are_those_of_the_lesson_or_given():
    assert lesson_parameters("05")["epochs"] == 12
    first, *_, last = lesson_jobs("5", {"instance_count": 3})
    assert (first.name, last.name) == ("measure 1 x 3", "3 x 1 MultiWorker")
    assert {job.max_run for job in lesson_jobs("10", {"max_run": 90})} == {90}
    assert [job.name for job in lesson_jobs("02")] == ["ring"]


def test_nothing_is_needed_and_nothing_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://192.0.2.1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    hosts = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *_, **__: hosts.append(host))
    (job,) = preview(lesson_jobs("00", {"epochs": 3}), preview_session("aws", "anna"))
    assert job.request["RoleArn"].startswith("arn:aws:iam::" + "0" * 12)
    assert job.request["HyperParameters"]["epochs"] == "3"
    assert ".eu-central-1." in job.request["AlgorithmSpecification"]["TrainingImage"]
    assert job.request["TrainingJobName"].startswith("workshop-anna-first-")
    assert hosts == [], "something looked for a host"
    assert os.environ["AWS_PROFILE"] == "no-such-profile", "the shell's variables are back"
    assert daemon.running(tmp_path / "state") is None and not (tmp_path / "state").exists()


def test_each_spot_job_keeps_checkpoints_of_its_own():
    """A new job must not resume from an old one."""
    built = preview(lesson_jobs("10") * 2, preview_session("aws", region="us-east-1"))
    spot = [job.request for job in built if job.request.get("EnableManagedSpotTraining")]
    places = [request["CheckpointConfig"]["S3Uri"] for request in spot]
    assert len(places) >= 2 and len(set(places)) == len(places)
