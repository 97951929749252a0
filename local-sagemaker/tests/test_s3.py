"""S3's calls on objects, by boto3: what a client of AWS gets."""

import datetime
import os
import uuid

import pytest
from botocore.exceptions import ClientError
from botocore.handlers import validate_bucket_name
from raw_http import head, raw

PART = 5 * 1024**2
LAST = "\U0010ffff" * 2  # no key sorts after what begins with it


@pytest.fixture(scope="module")
def s3(emulator):
    return emulator.client("s3")


@pytest.fixture
def bucket(s3):
    name = f"bucket-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return name


def refused(call, **members) -> tuple[str, int]:
    """(code, status) of a call that must fail."""
    with pytest.raises(ClientError) as caught:
        call(**members)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def body(s3, bucket: str, key: str, **options) -> bytes:
    return s3.get_object(Bucket=bucket, Key=key, **options)["Body"].read()


def test_what_is_stated_about_an_object_comes_back(s3, bucket):
    stated = {
        "ContentType": "text/plain",
        "CacheControl": "no-cache",
        "ContentDisposition": "inline",
        "ContentEncoding": "gzip",
        "ContentLanguage": "de",
        "Metadata": {"rank": "3"},
        "Expires": datetime.datetime(2030, 1, 2, tzinfo=datetime.UTC),
    }
    s3.put_object(Bucket=bucket, Key="a b+é/ü.txt", Body=b"hello", **stated)
    for call in (s3.get_object, s3.head_object):
        response = call(Bucket=bucket, Key="a b+é/ü.txt")
        assert {name: response[name] for name in stated} == stated
        assert response["ContentLength"] == 5
        assert response["ETag"] == '"5d41402abc4b2a76b9719d911017c592"'
    override = body(s3, bucket, "a b+é/ü.txt", ResponseContentType="text/html")
    assert override == b"hello"


def test_ranges(s3, bucket):
    where, digits = {"Bucket": bucket, "Key": "digits"}, b"0123456789"
    s3.put_object(**where, Body=digits)
    for byte_range, expected in (
        ("bytes=0-0", b"0"),
        ("bytes=2-4", b"234"),
        ("bytes=7-", b"789"),
        ("bytes=-3", b"789"),
        ("bytes=5-100", b"56789"),
        ("bytes=0-2,4-5", digits),  # several: all of it, as S3 does
        ("rows=0-2", digits),
    ):
        response = s3.get_object(**where, Range=byte_range)
        assert response["Body"].read() == expected, byte_range
        whole = expected == digits
        assert response["ResponseMetadata"]["HTTPStatusCode"] == (200 if whole else 206)
        assert ("ContentRange" in response) != whole
    for byte_range in ("bytes=10-", "bytes=12-20"):
        refusal = refused(s3.get_object, **where, Range=byte_range)
        assert refusal == ("InvalidRange", 416), byte_range


def test_conditions(s3, bucket):
    etag = s3.put_object(Bucket=bucket, Key="key", Body=b"1")["ETag"]
    where = {"Bucket": bucket, "Key": "key"}
    assert body(s3, **{"bucket": bucket, "key": "key"}, IfMatch=etag) == b"1"
    assert refused(s3.get_object, **where, IfMatch='"other"') == ("PreconditionFailed", 412)
    assert refused(s3.get_object, **where, IfNoneMatch=etag)[1] == 304
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    assert refused(s3.get_object, **where, IfModifiedSince=later)[1] == 304
    put = {**where, "Body": b"2"}
    assert refused(s3.put_object, **put, IfNoneMatch="*") == ("PreconditionFailed", 412)
    assert refused(s3.put_object, **put, IfMatch='"other"') == ("PreconditionFailed", 412)
    s3.put_object(**put, IfMatch=etag)
    assert body(s3, bucket, "key") == b"2"


@pytest.mark.parametrize("call", ["list_objects", "list_objects_v2"])
def test_listing(s3, bucket, call):
    keys = ["a", "b/1", "b/2", "b/c/3", "d e", "f+g", "ü", LAST, f"{LAST}k"]
    for key in reversed(keys):
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())

    def listed(page: int, **options) -> tuple[list[str], list[str]]:
        pages = s3.get_paginator(call).paginate(
            Bucket=bucket, PaginationConfig={"PageSize": page}, **options
        )
        keys, prefixes = [], []
        for response in pages:
            contents, common = response.get("Contents", []), response.get("CommonPrefixes", [])
            keys += [row["Key"] for row in contents]
            prefixes += [row["Prefix"] for row in common]
            assert len(contents) + len(common) <= page
        return keys, prefixes

    for page in (1, 2, 100):
        assert listed(page) == (keys, [])
        assert listed(page, Prefix="b/") == (["b/1", "b/2", "b/c/3"], [])
        assert listed(page, Prefix="b/", Delimiter="/") == (["b/1", "b/2"], ["b/c/"])
        assert listed(page, Delimiter="/") == (["a", "d e", "f+g", "ü", LAST, f"{LAST}k"], ["b/"])
        assert listed(page, Prefix=LAST[:1]) == ([LAST, f"{LAST}k"], [])
        assert listed(page, Prefix="nothing") == ([], [])


def test_where_a_listing_starts(s3, bucket):
    for key in "abc":
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    response = s3.list_objects_v2(Bucket=bucket, StartAfter="a", MaxKeys=1, FetchOwner=True)
    assert [row["Key"] for row in response["Contents"]] == ["b"]
    assert response["IsTruncated"] and response["KeyCount"] == 1
    assert response["Contents"][0]["Owner"]
    assert s3.list_objects_v2(Bucket=bucket, MaxKeys=0)["IsTruncated"] is False
    wrong = {"Bucket": bucket, "ContinuationToken": "é"}
    assert refused(s3.list_objects_v2, **wrong) == ("InvalidArgument", 400)


def test_versions(s3, bucket):
    s3.put_object(Bucket=bucket, Key="old", Body=b"0")
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    first, second = (
        s3.put_object(Bucket=bucket, Key="key", Body=text)["VersionId"] for text in (b"1", b"2")
    )
    marker = s3.delete_object(Bucket=bucket, Key="key")
    assert marker["DeleteMarker"] is True
    assert refused(s3.get_object, Bucket=bucket, Key="key") == ("NoSuchKey", 404)
    assert body(s3, bucket, "key", VersionId=first) == b"1"
    where = {"Bucket": bucket, "Key": "key", "VersionId": marker["VersionId"]}
    assert refused(s3.get_object, **where) == ("MethodNotAllowed", 405)
    for page in (1, 2, 100):
        pages = s3.get_paginator("list_object_versions").paginate(
            Bucket=bucket, PaginationConfig={"PageSize": page}
        )
        rows = [
            row
            for response in pages
            for row in (*response.get("Versions", []), *response.get("DeleteMarkers", []))
        ]
        response = {(row["Key"], row["VersionId"]): row["IsLatest"] for row in rows}
        assert response == {
            ("key", marker["VersionId"]): True,
            ("key", second): False,
            ("key", first): False,
            ("old", "null"): True,
        }
    s3.delete_object(**where)
    assert body(s3, bucket, "key") == b"2"
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})
    s3.put_object(Bucket=bucket, Key="key", Body=b"3")
    s3.put_object(Bucket=bucket, Key="key", Body=b"4")
    versions = s3.list_object_versions(Bucket=bucket, Prefix="key")["Versions"]
    assert [row["VersionId"] for row in versions] == ["null", second, first]


def test_deleting_many(s3, bucket):
    for key in "abc":
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    objects = {"Objects": [{"Key": "a"}, {"Key": "b"}, {"Key": "never there"}]}
    response = s3.delete_objects(Bucket=bucket, Delete=objects)
    assert [row["Key"] for row in response["Deleted"]] == ["a", "b", "never there"]
    assert [row["Key"] for row in s3.list_objects_v2(Bucket=bucket)["Contents"]] == ["c"]
    quiet = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "c"}], "Quiet": True})
    assert "Deleted" not in quiet


def test_a_bucket_with_objects_is_not_deleted(s3, bucket):
    s3.put_object(Bucket=bucket, Key="key", Body=b"")
    assert refused(s3.delete_bucket, Bucket=bucket) == ("BucketNotEmpty", 409)
    s3.delete_object(Bucket=bucket, Key="key")
    s3.delete_bucket(Bucket=bucket)
    where = {"Bucket": bucket, "Key": "key"}
    assert refused(s3.put_object, **where, Body=b"") == ("NoSuchBucket", 404)
    assert refused(s3.get_object, **where) == ("NoSuchBucket", 404)


def test_copies(s3, bucket):
    s3.put_object(Bucket=bucket, Key="a/ü", Body=b"body", Metadata={"a": "1"})
    source = {"Bucket": bucket, "Key": "a/ü"}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=source)
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {"a": "1"}
    changes = {"Metadata": {"b": "2"}, "MetadataDirective": "REPLACE"}
    s3.copy_object(Bucket=bucket, Key="copy", CopySource=source, **changes)
    assert s3.head_object(Bucket=bucket, Key="copy")["Metadata"] == {"b": "2"}
    missing = {"Bucket": bucket, "Key": "x", "CopySource": {"Bucket": bucket, "Key": "y"}}
    assert refused(s3.copy_object, **missing) == ("NoSuchKey", 404)


def test_an_upload_in_parts(s3, bucket):
    upload = s3.create_multipart_upload(Bucket=bucket, Key="big", Metadata={"a": "b"})["UploadId"]
    whole = {"Bucket": bucket, "Key": "big", "UploadId": upload}
    (listed,) = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert listed["UploadId"] == upload
    first, last = os.urandom(PART), os.urandom(7)
    complete = s3.complete_multipart_upload
    small = [
        {"PartNumber": n, "ETag": s3.upload_part(**whole, PartNumber=n, Body=b"x")["ETag"]}
        for n in (1, 2)
    ]
    assert refused(complete, **whole, MultipartUpload={"Parts": small})[0] == "EntityTooSmall"
    parts = [
        {"PartNumber": n, "ETag": s3.upload_part(**whole, PartNumber=n, Body=part)["ETag"]}
        for n, part in ((1, first), (2, last))
    ]
    for wrong, code in (
        (parts[::-1], "InvalidPartOrder"),
        ([parts[0], parts[1] | {"ETag": '"0"'}], "InvalidPart"),
        ([], "MalformedXML"),
    ):
        assert refused(complete, **whole, MultipartUpload={"Parts": wrong}) == (code, 400)
    response = complete(**whole, MultipartUpload={"Parts": parts})
    assert response["ETag"].endswith('-2"')
    assert body(s3, bucket, "big") == first + last
    assert body(s3, bucket, "big", Range=f"bytes={PART - 1}-{PART}") == first[-1:] + last[:1]
    assert s3.head_object(Bucket=bucket, Key="big")["Metadata"] == {"a": "b"}
    again = {**whole, "MultipartUpload": {"Parts": parts}}
    assert refused(complete, **again) == ("NoSuchUpload", 404)
    # An ACL of "" is no ACL: old s3fs sends one.
    other = s3.create_multipart_upload(Bucket=bucket, Key="big", ACL="")["UploadId"]
    s3.abort_multipart_upload(Bucket=bucket, Key="big", UploadId=other)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)


def test_a_part_from_another_object(s3, bucket):
    s3.put_object(Bucket=bucket, Key="digits", Body=b"0123456789")
    upload = s3.create_multipart_upload(Bucket=bucket, Key="big")["UploadId"]
    whole = {"Bucket": bucket, "Key": "big", "UploadId": upload}
    source = {"Bucket": bucket, "Key": "digits"}
    response = s3.upload_part_copy(
        **whole, PartNumber=1, CopySource=source, CopySourceRange="bytes=2-4"
    )
    parts = {"Parts": [{"PartNumber": 1, "ETag": response["CopyPartResult"]["ETag"]}]}
    s3.complete_multipart_upload(**whole, MultipartUpload=parts)
    assert body(s3, bucket, "big") == b"234"


def test_files_by_boto3s_transfer_manager(s3, bucket, tmp_path):
    (tmp_path / "up").write_bytes(os.urandom(20 * 1024**2 + 3))
    s3.upload_file(str(tmp_path / "up"), bucket, "file")
    s3.download_file(bucket, "file", str(tmp_path / "down"))
    assert (tmp_path / "up").read_bytes() == (tmp_path / "down").read_bytes()
    s3.copy({"Bucket": bucket, "Key": "file"}, bucket, "copy")
    assert s3.head_object(Bucket=bucket, Key="copy")["ContentLength"] == 20 * 1024**2 + 3


@pytest.mark.parametrize(
    ("call", "members", "code", "status"),
    [
        ("get_object", {"Key": "missing"}, "NoSuchKey", 404),
        ("head_object", {"Key": "missing"}, "404", 404),
        ("get_object", {"Key": "missing", "VersionId": "x"}, "NoSuchVersion", 404),
        ("get_object", {"Key": "k", "PartNumber": 1}, "NotImplemented", 501),
        ("put_object", {"Key": "k" * 1025}, "KeyTooLongError", 400),
        ("put_object", {"Key": "k", "ACL": "public-read"}, "AccessControlListNotSupported", 400),
        ("put_object", {"Key": "k", "ExpectedBucketOwner": "1" * 12}, "AccessDenied", 403),
        ("list_parts", {"Key": "k", "UploadId": "x"}, "NotImplemented", 501),
        ("upload_part", {"Key": "k", "UploadId": "x", "PartNumber": 0}, "InvalidArgument", 400),
        ("list_objects_v2", {"MaxKeys": -1}, "InvalidArgument", 400),
        ("put_object", {"Key": "k", "Tagging": "a=b"}, "NotImplemented", 501),
        ("put_object_retention", {"Key": "k"}, "NotImplemented", 501),
        ("restore_object", {"Key": "k"}, "NotImplemented", 501),
        *(
            (
                "get_object",
                {"Key": "k", f"Response{name}": f"a{end}X-Own: b"},
                "InvalidArgument",
                400,
            )
            for name in ("ContentDisposition", "ContentType")
            for end in ("\r\n", "\n", "č")
        ),
    ],
)
def test_what_is_refused(s3, bucket, call, members, code, status):
    if call == "get_object" and members["Key"] == "k":
        s3.put_object(Bucket=bucket, Key="k", Body=b"")
    assert refused(getattr(s3, call), Bucket=bucket, **members) == (code, status)


@pytest.mark.parametrize(
    "name",
    ["Upper-case", "-begins", "ends-", "192.168.5.4", "two..dots", "under_score", "ab", "a" * 64],
)
def test_a_name_that_no_bucket_has(s3, name):
    # boto3 does not let through all of them.
    s3.meta.events.unregister("before-parameter-build.s3", validate_bucket_name)
    assert refused(s3.create_bucket, Bucket=name) == ("InvalidBucketName", 400)


def test_a_public_bucket_of_aws_is_not_here(s3):
    with pytest.raises(ClientError, match="AWS's public buckets, as JumpStart's, are not here"):
        s3.get_object(Bucket="jumpstart-cache-prod-us-east-1", Key="models_manifest.json")


def test_entities_in_a_bucket_s_xml(emulator, bucket):
    xml = b'<!DOCTYPE a [<!ENTITY b "c">]><Tagging><TagSet>&b;</TagSet></Tagging>'
    for query in ("tagging", "versioning", "cors", "lifecycle"):
        path = f"/{bucket}?{query}"
        lines = head(emulator.env, "s3", body=xml, method="PUT", path=path)
        response = raw(emulator, f"PUT {path} HTTP/1.1\n{lines}Content-Length: {len(xml)}", xml)
        assert response.startswith("HTTP/1.1 400 "), response
        assert "<Code>MalformedXML</Code>" in response, response
