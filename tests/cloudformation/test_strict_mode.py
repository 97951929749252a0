"""Strict mode itself: what the seat's roles allow gets through, the rest is refused as AWS does."""

import json
import subprocess
import sys

import as_aws
import pytest
from aws_calls import read
from lesson_runs import recorded

pytestmark = pytest.mark.soak  # as all that runs in strict mode
CALLS = """
import json, boto3
from botocore.exceptions import ClientError
api, s3, cfn = (boto3.client(name) for name in ("sagemaker", "s3", "cloudformation"))
tags = [{"Key": "workshop", "Value": "data-parallel"}, {"Key": "seat", "Value": "tests"}]
model = dict(ModelName="workshop-tests-m", ExecutionRoleArn=ROLE)
tried = {
    "list jobs": lambda: api.list_training_jobs(),
    "model without tags": lambda: api.create_model(**model),
    "model with another role": lambda: api.create_model(
        **{**model, "ExecutionRoleArn": "arn:aws:iam::123456789012:role/Admin"}, Tags=tags),
    "model": lambda: api.create_model(**model, Tags=tags),
    "delete it": lambda: api.delete_model(ModelName="workshop-tests-m"),
    "own bucket": lambda: s3.list_objects_v2(Bucket=BUCKET),
    "all buckets": lambda: s3.list_buckets(),
    "a stack": lambda: cfn.delete_stack(StackName="workshop-tests-roles"),
}
for name, call in tried.items():
    try:
        call()
        print(json.dumps([name, "done"]))
    except ClientError as error:
        print(json.dumps([name, error.response["Error"]["Code"]]))
"""


def test_what_the_role_allows_is_done_and_the_rest_refused_and_never_made(tmp_path):
    with as_aws.empty_account(tmp_path) as patch:
        opened = as_aws.owner()
        refused = as_aws.enforce(patch, opened, tmp_path)
        before = f"ROLE, BUCKET = {opened.role!r}, {opened.bucket!r}\n"
        command = [sys.executable, "-c", before + CALLS]
        with recorded(tmp_path / "calls"):
            done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        patch.delenv("STRICT_POLICIES")
        assert len(opened.client("cloudformation").describe_stacks()["Stacks"]) == 3
    assert dict(json.loads(line) for line in done.stdout.splitlines()) == {
        "list jobs": "done",
        "model without tags": "AccessDeniedException",
        "model with another role": "AccessDeniedException",
        "model": "done",
        "delete it": "done",  # it is known to have the seat's tags
        "own bucket": "done",
        "all buckets": "AccessDenied",
        "a stack": "AccessDeniedException",
    }
    operations = [call.operation for call in read(tmp_path / "calls")]
    assert operations.count("CreateModel") == 1 and "DeleteStack" not in operations
    admin = "iam:PassRole on resource: arn:aws:iam::123456789012:role/Admin"
    assert admin in refused.read_text()
