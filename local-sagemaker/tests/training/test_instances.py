"""The variables that an instance starts with."""

import os
import urllib.request

import pytest
from botocore.credentials import Credentials
from emulator_harness import request

from local_sagemaker.cluster.spec import Connectivity
from local_sagemaker.core.aws import LocalAws
from local_sagemaker.training import instance_types, instances
from local_sagemaker.training.job_record import JobRecord

REACHES_ALL = Connectivity()


def environment(
    tmp_path,
    monkeypatch,
    isolation: str = "namespaces",
    connectivity: Connectivity = REACHES_ALL,
    **changes,
) -> dict[str, str]:
    monkeypatch.setenv("PIP_FIND_LINKS", "/wheels")
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("SECRET_OF_THE_LEARNER", "x")
    body = request("a-job", **changes)
    record = JobRecord.create(tmp_path / "a-job", body, arn="arn:of:a-job", region="eu-west-1")
    aws = LocalAws(4600, Credentials("LOCALKEY", "its-secret"))
    return instances.environment(record, "algo-1", isolation, aws, connectivity)


def test_aws_and_pip_and_nothing_of_the_learners_shell(tmp_path, monkeypatch):
    env = environment(tmp_path, monkeypatch)
    assert env["AWS_REGION"] == env["AWS_DEFAULT_REGION"] == "eu-west-1"
    assert env["AWS_ENDPOINT_URL"] == "http://10.88.0.1:4566"
    assert env["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] == "false"  # ~/.aws/config is there, too
    assert (env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"]) == ("LOCALKEY", "its-secret")
    assert env["TRAINING_JOB_NAME"] == "a-job"
    assert env["PIP_FIND_LINKS"] == "/wheels"
    assert "AWS_PROFILE" not in env
    assert "SECRET_OF_THE_LEARNER" not in env


def test_without_namespaces_the_endpoint_is_on_loopback(tmp_path, monkeypatch):
    env = environment(tmp_path, monkeypatch, "processes")
    assert env["AWS_ENDPOINT_URL"] == "http://127.0.0.1:4600"


def test_a_request_adds_to_paths_and_sets_the_rest(tmp_path, monkeypatch):
    usual = environment(tmp_path / "1", monkeypatch)
    body = {"PYTHONPATH": "/opt/ml/code/lib", "PATH": "/opt/tools", "NCCL_DEBUG": "INFO"}
    body |= {"LOCAL_SAGEMAKER_JOB": "another's", "LOCAL_SAGEMAKER_HOST": "algo-9"}
    env = environment(tmp_path / "2", monkeypatch, Environment=body)
    assert env["PYTHONPATH"] == os.pathsep.join(["/opt/ml/code/lib", usual["PYTHONPATH"]])
    assert env["PATH"] == os.pathsep.join([usual["PATH"], "/opt/tools"])
    assert env["NCCL_DEBUG"] == "INFO"
    for name in ("LOCAL_SAGEMAKER_JOB", "LOCAL_SAGEMAKER_HOST"):  # jobs are found by these
        assert env[name] == usual[name]


def test_programs_are_told_of_the_proxy_where_there_is_a_way_out(tmp_path, monkeypatch):
    """Not for what is the job's own, nor for what the SDK would ask of the real AWS."""
    resources = {"InstanceCount": 2, "InstanceType": "ml.m5.xlarge", "VolumeSizeInGB": 1}
    env = environment(tmp_path / "1", monkeypatch, ResourceConfig=resources)
    assert env["PIP_PROXY"] == env["HTTPS_PROXY"] == "http://10.88.0.1:3128"
    assert "https_proxy" not in env  # gRPC would send TensorFlow's own traffic there
    monkeypatch.setenv("NO_PROXY", env["NO_PROXY"])
    for host in ("10.88.0.1:4566", "algo-2:2222", "sts.eu-west-1.amazonaws.com"):
        assert urllib.request.proxy_bypass_environment(host), host
    for host in ("huggingface.co", "ossci-datasets.s3.amazonaws.com"):
        assert not urllib.request.proxy_bypass_environment(host), host
    without = environment(tmp_path / "2", monkeypatch, connectivity=Connectivity(internet=False))
    assert not {"PIP_PROXY", "HTTPS_PROXY"} & set(without)


def test_an_isolated_job_has_no_key(tmp_path, monkeypatch):
    env = environment(
        tmp_path, monkeypatch, connectivity=Connectivity(emulator=False, internet=False)
    )
    assert env["AWS_REGION"] == "eu-west-1"
    assert not {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} & set(env)


@pytest.mark.parametrize(("version", "legacy"), [("2.12", True), ("2.18", False)])
def test_keras_is_the_images(tmp_path, monkeypatch, version, legacy):
    image = f"registry.invalid/tensorflow-training:{version}.0-cpu-py310"
    algorithm = {"TrainingImage": image, "TrainingInputMode": "File"}
    env = environment(tmp_path, monkeypatch, AlgorithmSpecification=algorithm)
    assert (env.get("TF_USE_LEGACY_KERAS") == "1") == legacy
    assert ("keras_2" in env["PYTHONPATH"]) == legacy


@pytest.mark.parametrize(
    ("kind", "count"),
    [("ml.p3.16xlarge", 8), ("ml.p2.xlarge", 1), ("ml.p4d.24xlarge", 8), ("ml.m5.xlarge", 0)],
)
def test_gpus_of_types_old_and_new(kind, count):
    assert instance_types.gpus(kind) == count
