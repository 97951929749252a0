"""The one switch between this machine and AWS."""

import os

import pytest

import workshop
from workshop.jobs.session import SessionError


@pytest.mark.parametrize(
    "target, seat, message",
    [(target, "me", 'must be "local" or "aws"') for target in ("AWS", "laptop", "")]
    + [("local", seat, "seat is") for seat in ("", "Anna", "-a", "a-", "a" * 17, "a b")],
)
def test_an_unknown_target_and_a_malformed_seat_are_named(target, seat, message):
    with pytest.raises(SessionError, match=message):
        workshop.session(target, seat)


def test_local_clears_what_would_send_calls_elsewhere(sagemaker_emulator, clean_aws, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "x")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://192.0.2.1")
    opened = workshop.session("local", seat="tests")
    assert os.environ["AWS_ENDPOINT_URL"] == sagemaker_emulator.url
    assert opened.client("s3").meta.endpoint_url == sagemaker_emulator.url
    assert opened.client("s3").list_buckets()["ResponseMetadata"]["HTTPStatusCode"] == 200


def test_going_to_aws_brings_the_users_variables_back(sagemaker_emulator, clean_aws, monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    workshop.session("local", seat="tests")
    assert "AWS_PROFILE" not in os.environ
    with pytest.raises(SessionError, match="mine"):  # there is no such profile here
        workshop.session("aws")
    assert os.environ["AWS_PROFILE"] == "mine"
    assert os.environ["AWS_DEFAULT_REGION"] == "eu-central-1"
    assert "AWS_ENDPOINT_URL" not in os.environ


@pytest.mark.parametrize(
    "variables, message",
    [
        ({}, "No AWS region"),
        ({"AWS_DEFAULT_REGION": "us-east-1"}, r'credentials are missing.*target="local"'),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4600"}, "unset AWS_ENDPOINT_URL"),
    ],
)
def test_aws_says_what_the_shell_lacks(clean_aws, monkeypatch, variables, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SessionError, match=message):
        workshop.session("aws")


def test_a_local_session_makes_its_stacks_when_they_are_missing(
    sagemaker_emulator, clean_aws, capsys
):
    opened = workshop.session("local", seat="fresh")
    assert opened.role.startswith("arn:aws:iam::")
    opened.client("s3").head_bucket(Bucket=opened.bucket)
    assert "Made the storage and roles stacks" in capsys.readouterr().out


def test_a_data_set_is_uploaded_and_its_channels_are_named(session, tmp_path, monkeypatch):
    monkeypatch.setattr("workshop.jobs.session.DATA", tmp_path)
    channels = session.upload("digits", quiet=True)
    for name, address in channels.items():
        assert address == f"s3://{session.bucket}/data/digits/{name}"
        listing = session.client("s3").list_objects_v2(
            Bucket=session.bucket, Prefix=f"data/digits/{name}/"
        )
        keys = {item["Key"].rpartition("/")[-1] for item in listing["Contents"]}
        assert keys == {path.name for path in (tmp_path / "digits" / name).iterdir()}
    assert set(channels) == {"training", "test"}
