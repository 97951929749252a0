"""Only who holds the emulator's key is answered: not other users, not web pages."""

import contextlib
import os
import re
import resource
import select
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import botocore.auth
import psutil
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from emulator_harness import client_of, until
from nobody_helpers import only_root, run_as_nobody
from raw_http import error, head, raw

from local_sagemaker import credentials, daemon
from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.pytest_plugin import BUCKET

LIST = "SageMaker.ListTrainingJobs"


CODES = {  # service: (a call, code for an unknown key, code for a wrong secret)
    "s3": ("list_buckets", "InvalidAccessKeyId", "SignatureDoesNotMatch"),
    "sagemaker": (
        "list_training_jobs",
        "UnrecognizedClientException",
        "InvalidSignatureException",
    ),
    "cloudwatch": ("list_metrics", "UnrecognizedClientException", "InvalidSignatureException"),
    "iam": ("list_roles", "InvalidClientTokenId", "SignatureDoesNotMatch"),
    "ec2": ("describe_vpcs", "AuthFailure", "AuthFailure"),
}


@pytest.mark.parametrize("service", CODES)
def test_a_wrong_key_gets_awss_error(emulator, service):
    call, unknown, wrong = CODES[service]
    getattr(client_of(emulator, service), call)()
    for code, key in ((unknown, {"key": "LOCALOTHER"}), (wrong, {"secret": "other"})):
        with pytest.raises(ClientError, match=rf"\({code}\).*local-sagemaker env"):
            getattr(client_of(emulator, service, **key), call)()


def test_an_unsigned_call_is_denied_and_stores_nothing(emulator):
    refusal = error(emulator, LIST, {}, service="")
    assert refusal[:2] == (403, "MissingAuthenticationTokenException")
    lines = f"PUT /{BUCKET}/stolen HTTP/1.1\nHost: 127.0.0.1\nContent-Length: {5 << 30}"
    answer = raw(emulator, lines, b"x" * 1000)
    assert answer.startswith("HTTP/1.1 403 ") and "<Code>AccessDenied</Code>" in answer
    with pytest.raises(ClientError, match="404"):
        emulator.client("s3").head_object(Bucket=BUCKET, Key="stolen")


@pytest.mark.parametrize("minutes", [-16, 16])
def test_an_old_signature_is_refused(emulator, monkeypatch, minutes):
    then = datetime.now(UTC).replace(tzinfo=None) + timedelta(minutes=minutes)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: then)
    lines = f"GET /{BUCKET} HTTP/1.1\r\n{head(emulator.env, 's3', method='GET', path=f'/{BUCKET}')}"
    assert "<Code>RequestTimeTooSkewed</Code>" in raw(emulator, lines)


def test_another_body_than_the_signed_one_is_refused(emulator):
    lines = head(emulator.env, "s3", body=b"signed", method="PUT", path=f"/{BUCKET}/other")
    lines = f"PUT /{BUCKET}/other HTTP/1.1\r\nContent-Length: 6\r\n{lines}"
    assert "XAmzContentSHA256Mismatch" in raw(emulator, lines, b"forged")
    lines = head(emulator.env, body=b"{}", X_Amz_Target=LIST)
    answer = raw(emulator, f"POST / HTTP/1.1\r\nContent-Length: 3\r\n{lines}", b"{ }")
    assert "InvalidSignatureException" in answer


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_presigned_addresses(emulator, version):
    key = "a b+c/é~*'()!//x&y=z?#%20"
    uri = emulator.put(key, "kept")
    s3 = client_of(emulator, "s3", config=Config(signature_version=version))
    object_ = {"Bucket": BUCKET, "Key": key}
    url = s3.generate_presigned_url("get_object", object_)
    assert urllib.request.urlopen(url).read() == b"kept"
    put = urllib.request.Request(
        s3.generate_presigned_url("put_object", object_), b"new", method="PUT"
    )
    # urllib adds a Content-Type, which is part of the older signature.
    put.add_header("Content-Type", "")
    urllib.request.urlopen(put)
    assert emulator.get(uri) == b"new"
    signature = re.search("Signature=([^&]+)", url)[1]
    forged = url.replace(signature, "0" * len(signature))
    expired = s3.generate_presigned_url("get_object", object_, ExpiresIn=-10)
    for wrong in (forged, expired, url.replace(BUCKET, "other", 1)):
        with pytest.raises(urllib.error.HTTPError, match=r"40[03]"):
            urllib.request.urlopen(wrong)


def test_keys_that_the_emulator_issued(emulator):
    iam, sts = emulator.client("iam"), emulator.client("sts")
    # Its own is a session of a role that a job may have: the SDK 3 looks for one by this name.
    _, name, _ = sts.get_caller_identity()["Arn"].split("assumed-role")[-1].split("/")
    trusted = iam.get_role(RoleName=name)["Role"]["AssumeRolePolicyDocument"]["Statement"]
    assert [statement["Principal"] for statement in trusted] == [
        {"Service": "sagemaker.amazonaws.com"}
    ]
    iam.create_user(UserName="somebody")
    made = iam.create_access_key(UserName="somebody")["AccessKey"]
    user = client_of(emulator, "s3", made["AccessKeyId"], made["SecretAccessKey"])
    assert user.list_buckets()["Buckets"]
    iam.delete_access_key(UserName="somebody", AccessKeyId=made["AccessKeyId"])
    with pytest.raises(ClientError, match="InvalidAccessKeyId"):
        user.list_buckets()
    role = "arn:aws:iam::" + "0" * 12 + ":role/learner"
    given = sts.assume_role(RoleArn=role, RoleSessionName="test")["Credentials"]
    pair = (given["AccessKeyId"], given["SecretAccessKey"])
    client_of_role = client_of(emulator, "sts", *pair, aws_session_token=given["SessionToken"])
    assert "assumed-role/learner/test" in client_of_role.get_caller_identity()["Arn"]
    for token in ({}, {"aws_session_token": "other"}):  # it is a part of the key
        with pytest.raises(ClientError, match="InvalidClientTokenId"):
            client_of(emulator, "sts", *pair, **token).get_caller_identity()
    for other in (sts.get_session_token, lambda: sts.get_federation_token(Name="somebody")):
        with pytest.raises(ClientError, match="call assume_role"):
            other()


def test_a_form_is_told_what_to_send_instead(emulator):
    form = emulator.client("s3").generate_presigned_post(BUCKET, "form")
    sent = {name: (None, value) for name, value in form["fields"].items()}
    answer = requests.post(form["url"], files=sent | {"file": b"hello"}, timeout=10)
    assert answer.status_code == 501
    assert "generate_presigned_url('put_object')" in answer.text


def chunks(emulator, payload: str) -> str:
    """The response to `hello` in AWS's own chunks. payload: as the signature names it."""

    class Chunked(botocore.auth.S3SigV4Auth):
        def payload(self, request):
            return payload

    env = emulator.env
    key = botocore.credentials.Credentials(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
    path = f"/{BUCKET}/chunks"
    headers = {"Host": "127.0.0.1", "x-amz-trailer": "x-amz-checksum-sha1"}
    request = botocore.awsrequest.AWSRequest("PUT", f"http://127.0.0.1{path}", headers)
    Chunked(key, "s3", "us-east-1").add_auth(request)
    body = b"5\r\nhello\r\n0\r\nx-amz-checksum-sha1:qvTGHdzF6KLavt4PO0gs2a6pQ00=\r\n\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    lines = f"PUT {path} HTTP/1.1\r\nContent-Length: {len(body)}\r\n{lines}"
    return raw(emulator, lines, body)


def test_a_body_in_awss_own_chunks(emulator):
    """With a checksum after them; only chunks that are signed one by one are not taken."""
    payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    assert chunks(emulator, payload).startswith("HTTP/1.1 200")
    assert emulator.get(f"s3://{BUCKET}/chunks") == b"hello"
    refusal = chunks(emulator, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
    assert refusal.startswith("HTTP/1.1 501") and "Sign the whole body" in refusal


def test_the_aws_cli_needs_nothing_but_the_variables(emulator, tmp_path):
    """They outrank a config file that ignores them."""
    (tmp_path / "config").write_text("[default]\nignore_configured_endpoint_urls = true\n")
    cli = [sys.executable, "-m", "awscli", "s3", "ls"]
    env = {"PATH": os.environ["PATH"], "AWS_CONFIG_FILE": str(tmp_path / "config")}
    done = subprocess.run(cli, env=env | emulator.env, capture_output=True, text=True, timeout=60)
    assert BUCKET in done.stdout, done.stderr


def test_the_key_is_its_owners_alone(emulator, tmp_path):
    path = emulator.state / credentials.FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(emulator.state.stat().st_mode) == 0o700
    assert credentials.load(tmp_path / "other").secret_key not in path.read_text()


def test_a_state_directory_that_others_may_write_to_is_refused(tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o770)
    with pytest.raises(EmulatorError, match=f"chmod 700 {state}"):
        daemon.start(state, 0)
    state.chmod(0o755)
    credentials.make_private(state)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


def test_connections_without_a_key_do_not_shut_it(mortal):
    """700 of them with half a head: their owner's calls are answered, and they are let go.

    The emulator may have 600 files open.
    """
    resource.prlimit(mortal.running.pid, resource.RLIMIT_NOFILE, (600, 600))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    api = client_of(mortal, "sagemaker")
    api.list_training_jobs()
    with contextlib.ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        address = ("127.0.0.1", mortal.running.port)
        began, many = time.monotonic(), []
        for _ in range(700):
            with contextlib.suppress(TimeoutError):  # nobody takes it
                many.append(stack.enter_context(socket.create_connection(address, timeout=1)))
                many[-1].sendall(b"POST / HTTP/1.1\r\nX-Slow: ")
            assert time.monotonic() < began + 60
        client_of(mortal, "sagemaker").list_training_jobs()
        api.list_training_jobs()
        last = many[-1]
        last.settimeout(30)
        with contextlib.suppress(ConnectionError):  # a byte now and then does not keep it
            while time.monotonic() < began + 40 and not select.select([last], [], [], 1)[0]:
                last.sendall(b"x")
        until(lambda: psutil.Process(mortal.running.pid).num_fds() < 100)


ATTACK = """
import json, urllib.request
def ask(**headers):
    request = urllib.request.Request(sys.argv[2], b"{}", headers)
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as error:
        return error.code
target = {"X-Amz-Target": "SageMaker.ListTrainingJobs"}
scope = "Credential=local/20260101/us-east-1/sagemaker/aws4_request"
wrong = {"Authorization": f"AWS4-HMAC-SHA256 {scope}, Signature=0"}
found = [ask(**target), ask(**target, **wrong)]
try:
    found.append(open(sys.argv[3]).read())
except PermissionError:
    found.append("no")
print(json.dumps(found))
"""


@only_root
def test_another_user_gets_nothing(emulator, tmp_path):
    key = str(emulator.state / credentials.FILE)
    done = run_as_nobody(ATTACK, tmp_path, emulator.env["AWS_ENDPOINT_URL"], key)
    assert done.stdout.strip() == '[403, 403, "no"]', done.stderr
