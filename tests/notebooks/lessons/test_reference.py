"""The reference notebook, executed; and what it shows of version 3 and of the scripts."""

import re

import pytest
from sagemaker.estimator import EstimatorBase
from sagemaker.pytorch import PyTorch
from sagemaker.tensorflow import TensorFlow

from workshop.account import preflight
from workshop.account.prices import cost
from workshop.account.stacks import template_parameters
from workshop.course.lessons import chosen
from workshop.jobs import sdk_v3
from workshop.jobs.job_preview import preview_session
from workshop.jobs.lesson_jobs import PLANNED_SECONDS
from workshop.launch.horovod import horovod_status
from workshop.paths import NOTEBOOKS, SCRIPTS, SDK_V3

SOURCE = NOTEBOOKS / "reference.py"
# What version 2 sends and a plain request can leave out.
ONLY_V2 = {
    "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries",
    "HyperParameters.model_dir",
    "HyperParameters.sagemaker_container_log_level",
    "HyperParameters.sagemaker_job_name",
    "HyperParameters.sagemaker_region",
    "ProfilerConfig.DisableProfiler",
}
# SageMaker Debugger takes no new customers since 2026-07-30, and version 2 adds it by itself.
DEBUGGER = {"DebugHookConfig", "DebugRuleConfigurations", "ProfilerRuleConfigurations"}
# What version 3 sends besides: its command, and scripts and drivers as channels.
ONLY_V3 = ("AlgorithmSpecification.Container", "InputDataConfig.code", "InputDataConfig.sm_drivers")


def test_it_is_run_with_the_lessons_and_before_the_clean_up():
    names = [path.stem for path in chosen(())]
    assert names[-2:] == ["reference", "99_clean_up"]
    assert [path.stem for path in chosen(("reference",))] == ["reference"]


def estimators():
    """The estimators of the reference, built from its own cells."""
    session = preview_session("aws", region="us-east-1")
    values = {"sagemaker_session": session.sagemaker_session, "role": session.role, "epochs": 2}
    values |= {"bucket": session.bucket, "seat": "me", "source_dir": str(SCRIPTS / "train")}
    values |= {"tags": [], "image": "image", "PyTorch": PyTorch, "TensorFlow": TensorFlow}
    matches = re.findall(
        r"^(estimator = \w+\(\n.*?^\))$", SOURCE.read_text(), re.MULTILINE | re.DOTALL
    )
    for text in matches:
        exec(text, values)
        EstimatorBase.fit.__wrapped__(values["estimator"], wait=False)
        yield values["estimator"], session.requests[-1]


def test_no_job_asks_for_debugger_and_preflight_has_no_objection(clean_aws):
    built = list(estimators())
    assert len(built) == len(sdk_v3.WAYS) + 1  # SMDDP, which version 3 does not have
    for estimator, request in built:
        assert request["ProfilerConfig"] == {"DisableProfiler": True}, estimator.entry_point
        assert not DEBUGGER & set(request), estimator.entry_point
        checks = preflight.check(preflight.JobConfiguration.from_estimator(estimator))
        assert preflight.all_ok(checks), [result for result in checks if result.ok is False]
        assert "debugger" not in {finding.topic for finding in checks}


def test_the_appendix_names_its_cost_and_takes_what_a_seat_may():
    text = (SDK_V3 / "sdk_v3.py").read_text()
    (count,) = re.findall(r"instance_count=(\d+)", text)
    usd = cost("ml.c5.xlarge", int(count), PLANNED_SECONDS).usd
    assert f"about {usd:.2f} USD: one job" in text and text.count("\nddp.train(") == 1
    assert set(re.findall(r"\bml\.\w+\.\w+", text)) == {"ml.c5.xlarge"}
    assert "ml.c5.xlarge" in template_parameters("roles")["InstanceTypes"]["Default"].split(",")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_reference(lesson_run):
    run = lesson_run("reference")
    assert run.complaints == []
    results = run.results
    ways = ["ddp"] + (["horovod"] if horovod_status().available else [])
    for way in ways:
        (v2,), (boto3,) = results[way]["v2"], results[way]["boto3"]
        assert v2 == boto3 and re.fullmatch("[0-9a-f]{64}", v2), way
    assert results["ddp_ranks"] == [2, 2]
    assert set(results["vpc_config"]) == {"Subnets", "SecurityGroupIds"}
    ranks = {k.removeprefix("sagemaker_mpi_"): v.strip('"') for k, v in results["ranks"].items()}
    assert ranks["num_of_processes_per_host"] == "4"
    assert ranks["custom_mpi_options"] == "-x NCCL_DEBUG=INFO"
    assert results["channel"]["InputMode"] == "FastFile"
    files = results["channel"]["DataSource"]["S3DataSource"]
    assert files["S3DataDistributionType"] == "ShardedByS3Key"
    assert results["image"].endswith("/my-training:1") and results["stack_outputs"]["BucketName"]
    assert set(results["from_v2"]) == set(results["from_v3"]) == set(sdk_v3.WAYS)
    for way, (only_v2, only_boto3, differ) in results["from_v2"].items():
        assert set(only_v2) <= ONLY_V2, way
        assert only_boto3 == [], way
        assert differ == ["HyperParameters.sagemaker_submit_directory"], way
    for way, (only_v3, only_boto3, differ) in results["from_v3"].items():
        defaults = ("OutputDataConfig.CompressionType", "InputDataConfig.t")
        assert all(path.startswith(ONLY_V3 + defaults) for path in only_v3), way
        seats_paths = {path for path in only_boto3 if "sagemaker_" not in path}
        commanded = (
            {"HyperParameters.epochs"} if way in ("multiworker", "parameter_server") else set()
        )
        assert seats_paths == commanded, way
        assert differ == [], way
