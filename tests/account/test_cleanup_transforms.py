"""Transform jobs: one that runs is stopped, and its log goes. Its record cannot be deleted."""

from __future__ import annotations

import io
import tarfile

from seat_helpers import ROLE, until

from workshop.account import cleanup, stacks

SLEEPS = b"""
import time
print("begun", flush=True)
def model_fn(model_dir): return None
def transform_fn(model, data, content_type, accept): time.sleep(600)
"""
GROUP = "/aws/sagemaker/TransformJobs"


def test_a_transform_job_that_runs_is_stopped(session):
    full, s3, bucket = f"{session.job_prefix}transform", session.client("s3"), session.bucket
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as tar:
        info = tarfile.TarInfo("code/inference.py")
        info.size = len(SLEEPS)
        tar.addfile(info, io.BytesIO(SLEEPS))
    s3.put_object(Bucket=bucket, Key="model.tar.gz", Body=raw.getvalue())
    s3.put_object(Bucket=bucket, Key="in/a.json", Body=b"1")
    api, tags = session.client("sagemaker"), stacks.tags(session.seat)
    container = {"Image": "registry.invalid/a", "ModelDataUrl": f"s3://{bucket}/model.tar.gz"}
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
    logs = session.client("logs")
    until(lambda: logs.describe_log_groups(logGroupNamePrefix=GROUP)["logGroups"], seconds=120)
    until(lambda: cleanup.find(session).of("log streams of transform jobs"), seconds=60)
    (running,) = cleanup.find(session).of("running transform jobs")
    assert (running.name, running.note) == (full, "costs until it ends")
    said: list[str] = []
    report = cleanup.clean(session, said.append)
    assert report.nothing_left, report.lines()
    assert f"running transform jobs: {full}: stopped" in said
    assert f"log streams of transform jobs: {full}: deleted" in said
    found = api.describe_transform_job(TransformJobName=full)
    assert found["TransformJobStatus"] == "Stopped"
    assert cleanup.clean(session, said.append).done == []
