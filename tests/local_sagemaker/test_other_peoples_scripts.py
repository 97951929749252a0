"""Scripts and calls as others write them: each imitates what its docstring or comment names."""

from __future__ import annotations

import io
import tarfile
import uuid

import pytest
from botocore.exceptions import ClientError

from endpoint_harness import BUCKET, ROLE, estimator, start
from local_sagemaker.jobs import instance_types

FULL_ACCESS = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"


def test_keras_2_where_the_image_has_it_and_a_model_without_compression(endpoint, sdk):
    """The second is the SDK's disable_output_compression=True."""
    options = {"instance_count": 1, "disable_output_compression": True}
    job = endpoint.wait(start(estimator(sdk, "keras_2_script.py", **options)))
    assert job.status == "Completed", job.description.get("FailureReason")
    assert job.lines("RATE") == ["0.01"]
    uri = job.description["ModelArtifacts"]["S3ModelArtifacts"]
    assert uri.endswith(f"/{job.name}/output/model/")
    assert endpoint.get(f"{uri}weights.h5").startswith(b"\x89HDF")


def test_an_archive_of_another_user_and_a_shell_entry_point(endpoint, sdk):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        one = tarfile.TarInfo("foreign.txt")
        one.size, one.uid, one.gid = 5, 4711, 4711
        archive.addfile(one, io.BytesIO(b"hello"))
    prefix = uuid.uuid4().hex
    endpoint.put(f"{prefix}/foreign.tar.gz", packed.getvalue())
    training = estimator(sdk, "untar.sh", instance_count=1)
    job = endpoint.wait(start(training, {"training": f"s3://{BUCKET}/{prefix}"}))
    assert job.status == "Completed", job.description.get("FailureReason")
    assert job.lines("UNPACKED") == ["hello"]


@pytest.mark.parametrize(
    ("kind", "count"),
    [("ml.p3.16xlarge", 8), ("ml.p2.xlarge", 1), ("ml.p4d.24xlarge", 8), ("ml.m5.xlarge", 0)],
)
def test_gpus_of_types_old_and_new(kind, count):
    assert instance_types.gpus(kind) == count


def test_awss_own_policies(endpoint):
    """The first lines of many notebooks: a role with AmazonSageMakerFullAccess."""
    iam, name = endpoint.client("iam"), f"role-{uuid.uuid4().hex[:8]}"
    iam.create_role(RoleName=name, AssumeRolePolicyDocument="{}")
    iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS)
    attached = iam.list_attached_role_policies(RoleName=name)["AttachedPolicies"]
    assert [one["PolicyArn"] for one in attached] == [FULL_ACCESS]
    assert iam.get_policy(PolicyArn=FULL_ACCESS)["Policy"]["AttachmentCount"] == 1
    with pytest.raises(ClientError, match="NoSuchEntity"):
        iam.attach_role_policy(RoleName=name, PolicyArn=FULL_ACCESS + "Typo")


PROCESSING = {
    "ProcessingJobName": "one",
    "RoleArn": ROLE,
    "AppSpecification": {"ImageUri": "image"},
    "ProcessingResources": {
        "ClusterConfig": {"InstanceCount": 1, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 1}
    },
}


def test_what_would_compute_is_not_said_to_have_run(endpoint):
    api = endpoint.client("sagemaker")
    with pytest.raises(ClientError, match="does not run processing jobs"):
        api.create_processing_job(**PROCESSING)
    with pytest.raises(ClientError, match="does not run pipelines"):
        api.create_pipeline(
            PipelineName="p", PipelineDefinition="{}", ClientRequestToken="t" * 32, RoleArn=ROLE
        )
