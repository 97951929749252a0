"""What moto holds outlives the endpoint."""

from __future__ import annotations

import gc
import logging

import psutil
import pytest
from botocore.exceptions import ClientError
from moto_life import lives

from local_sagemaker.server.pickling import StatePickler

MEGABYTE = 1_000_000


@pytest.fixture
def life(tmp_path):
    return lives(tmp_path)


def test_objects_and_versions(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.put("bucket", "replaced", b"one")
        now.put("bucket", "replaced", b"two", Metadata={"a_b": "c"})
        now.put("bucket", "empty", b"")
        now.s3.create_bucket(Bucket="versions")
        enabled = {"Status": "Enabled"}
        now.s3.put_bucket_versioning(Bucket="versions", VersioningConfiguration=enabled)
        for body in (b"1", b"2"):
            now.put("versions", "key", body)
        now.put("versions", "gone", b"3")
        now.s3.delete_object(Bucket="versions", Key="gone")
        now.save()
    with life() as now:
        found = now.s3.get_object(Bucket="bucket", Key="replaced")
        assert (found["Body"].read(), found["Metadata"]) == (b"two", {"a_b": "c"})
        assert now.get("bucket", "empty") == b""
        listed = now.s3.list_object_versions(Bucket="versions")
        versions = {
            now.get("versions", one["Key"], VersionId=one["VersionId"]): one["IsLatest"]
            for one in listed["Versions"]
        }
        assert versions == {b"1": False, b"2": True, b"3": False}
        assert [one["Key"] for one in listed["DeleteMarkers"]] == ["gone"]
        with pytest.raises(ClientError, match="NoSuchKey"):
            now.get("versions", "gone")


def test_a_multipart_upload_goes_on_after_a_restart(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        upload = now.s3.create_multipart_upload(Bucket="bucket", Key="big")["UploadId"]
        whole = {"Bucket": "bucket", "Key": "big", "UploadId": upload}
        now.s3.upload_part(**whole, PartNumber=1, Body=b"x" * 5 * 1024**2)
        now.save()
    with life() as now:
        now.s3.upload_part(**whole, PartNumber=2, Body=b"end")
        now.save()
        listed = now.s3.list_parts(**whole)["Parts"]
        parts = [{"PartNumber": one["PartNumber"], "ETag": one["ETag"]} for one in listed]
        now.s3.complete_multipart_upload(**whole, MultipartUpload={"Parts": parts})
        now.save()
    with life() as now:
        assert now.get("bucket", "big") == b"x" * 5 * 1024**2 + b"end"
        now.save()
        assert len(now.blobs()) == 1  # the parts are not kept beside the whole


def test_big_objects_are_on_disk_and_not_in_memory(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.put("bucket", "first", b"-" * 20 * MEGABYTE)
        now.save()
        gc.collect()
        before = psutil.Process().memory_info().rss
        for number in range(4):
            now.put("bucket", f"big-{number}", bytes([number]) * 20 * MEGABYTE)
            now.save()
        gc.collect()
        assert psutil.Process().memory_info().rss - before < 50 * MEGABYTE
        sizes = [path.stat().st_size for path in now.state.blobs.iterdir()]
        assert sizes == [20 * MEGABYTE] * 5
        assert now.get("bucket", "big-3", Range="bytes=5-8") == b"\3\3\3\3"


def test_what_was_deleted_is_off_the_disk_after_a_restart(life, tmp_path):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        for key in ("kept", "gone", "replaced"):
            now.put("bucket", key, key.encode())
            now.save()
        now.s3.delete_object(Bucket="bucket", Key="gone")
        now.put("bucket", "replaced", b"second")
        now.save()
    (tmp_path / "blobs" / "0123.tmp").write_bytes(b"half written when the machine stopped")
    with life() as now:
        assert now.blobs() == [b"kept", b"second"]
        listed = now.s3.list_objects_v2(Bucket="bucket")["Contents"]
        assert [one["Key"] for one in listed] == ["kept", "replaced"]


def test_what_is_written_again_and_again_does_not_fill_the_disk(life):
    """A checkpoint, for example."""
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        for number in range(10):
            now.put("bucket", "checkpoint", str(number).encode())
            now.save()
        assert now.blobs() == [b"8", b"9"]
        assert now.get("bucket", "checkpoint") == b"9"


def test_a_copy_outlives_its_original(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.put("bucket", "original", b"body")
        now.save()
        source = {"Bucket": "bucket", "Key": "original"}
        now.s3.copy_object(Bucket="bucket", Key="copy", CopySource=source)
        now.s3.delete_object(**source)
        now.save()
    with life() as now:
        assert now.get("bucket", "copy") == b"body"


def test_services_with_locks_and_private_keys(life):
    """moto's SQS holds a lock and its KMS private keys, which pickle does not take by itself."""
    with life() as now:
        now.client("sqs").create_queue(QueueName="queue")
        key = now.client("kms").create_key()["KeyMetadata"]["KeyId"]
        now.client("kms").create_alias(AliasName="alias/k", TargetKeyId=key)
        now.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")
        now.save("sqs")
    with life() as now:
        assert now.client("sqs").list_queues()["QueueUrls"][0].endswith("/queue")
        api = now.client("kms")
        told = api.encrypt(KeyId="alias/k", Plaintext=b"secret")["CiphertextBlob"]
        assert api.decrypt(CiphertextBlob=told)["Plaintext"] == b"secret"
        assert now.client("iam").get_role(RoleName="role")["Role"]["RoleName"] == "role"


def test_a_service_that_cannot_be_kept_takes_no_other_with_it(life, caplog):
    with life() as now, caplog.at_level(logging.ERROR):
        now.client("ssm").put_parameter(Name="p", Value="v", Type="String")
        now.client("iam").create_role(RoleName="role", AssumeRolePolicyDocument="{}")
        now.save("iam")
        now.save("iam")
    assert caplog.text.count("ssm will not outlive this process") == 1
    with life() as now:
        assert now.client("iam").get_role(RoleName="role")["Role"]["RoleName"] == "role"


def test_saving_while_others_read(life, monkeypatch):
    """A read makes moto fill in dictionaries, also while they are being pickled."""
    dump, left = StatePickler.dump, [3]

    def disturbed(pickler, state):
        if left[0]:
            left[0] -= 1
            for number in (state_of_a_reader := dict.fromkeys(range(3))):
                state_of_a_reader[number + 3] = None  # what Python says to this is the point
        dump(pickler, state)

    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        monkeypatch.setattr(StatePickler, "dump", disturbed)
        now.save()
    assert left == [0]
    with life() as now:
        assert now.s3.list_buckets()["Buckets"][0]["Name"] == "bucket"


TEMPLATE = """{
  "Resources": {
    "Store": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "stack-bucket"}},
    "Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "stack-role",
      "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": []}}}
  },
  "Outputs": {"Bucket": {"Value": {"Ref": "Store"}}}
}"""


def test_a_stack_with_its_bucket_and_role(life):
    with life() as now:
        now.client("cloudformation").create_stack(StackName="stack", TemplateBody=TEMPLATE)
        now.save("cloudformation")
        now.put("stack-bucket", "key", b"body")
        now.save()
    with life() as now:
        api, roles = now.client("cloudformation"), now.client("iam")
        stack = api.describe_stacks(StackName="stack")["Stacks"][0]
        assert stack["StackStatus"] == "CREATE_COMPLETE"
        assert stack["Outputs"][0]["OutputValue"] == "stack-bucket"
        assert roles.get_role(RoleName="stack-role")["Role"]["RoleName"] == "stack-role"
        assert now.get("stack-bucket", "key") == b"body"
        now.s3.delete_object(Bucket="stack-bucket", Key="key")
        api.delete_stack(StackName="stack")
        now.save("cloudformation")
        assert roles.list_roles()["Roles"] == []
    with life() as now:
        assert now.s3.list_buckets()["Buckets"] == []
        assert now.client("iam").list_roles()["Roles"] == []
