"""Log streams that several jobs open at the same time."""

import boto3
import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from local_sagemaker.jobs.aws import LocalAws


@pytest.fixture
def logs(monkeypatch):
    """(an endpoint's own client, the stub of what answers it)."""
    own = LocalAws(4600, Credentials("key", "secret"))
    client = boto3.client("logs", "us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    monkeypatch.setattr(own, "client", lambda service, region: client)
    with Stubber(client) as stub:
        yield own, stub


def test_two_jobs_open_their_logs_at_once_and_the_second_finds_the_group(logs):
    own, stub = logs
    stub.add_client_error("create_log_group", "ResourceAlreadyExistsException")
    stub.add_client_error("create_log_stream", "ResourceAlreadyExistsException")
    kept = own.client("logs", "us-east-1")._make_api_call

    def another_thread_asked_first(*arguments):
        # What botocore raises is then of other classes than those that this thread has seen.
        own.client("logs", "us-east-1")._exceptions = None
        own.client("logs", "us-east-1")._exceptions_factory._client_exceptions_cache.clear()
        return kept(*arguments)

    own.client("logs", "us-east-1")._make_api_call = another_thread_asked_first
    own.open_log("us-east-1", "job/algo-1")
    stub.assert_no_pending_responses()


def test_another_error_is_raised(logs):
    own, stub = logs
    stub.add_client_error("create_log_group", "ServiceUnavailableException")
    with pytest.raises(ClientError, match="ServiceUnavailable"):
        own.open_log("us-east-1", "job/algo-1")
