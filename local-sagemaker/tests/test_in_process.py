"""Jobs write their log lines without HTTP: no server needs to listen."""

from __future__ import annotations

import time

import boto3
import pytest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from moto.logs.models import logs_backends

from local_sagemaker.moto_backend.state import MotoState
from local_sagemaker.server.app import Emulator
from local_sagemaker.server.in_process import InProcess

UNREACHABLE = "http://127.0.0.1:9"


@pytest.fixture
def connect(tmp_path):
    """Clients of an emulator that does not listen."""
    state = MotoState(tmp_path)
    gate = InProcess(Emulator({}, state, Credentials("LOCALKEY", "secret")))

    def client(service: str, secret: str = "secret"):
        session = boto3.Session("LOCALKEY", secret, region_name="us-east-1")
        made = session.client(service, endpoint_url=UNREACHABLE)
        gate.connect(made)
        return made

    yield client
    logs_backends.reset()
    state.close()


def test_log_lines_and_errors(connect):
    logs = connect("logs")
    where = {"logGroupName": "group", "logStreamName": "stream"}
    with pytest.raises(ClientError, match="ResourceNotFoundException"):
        logs.create_log_stream(**where)
    logs.create_log_group(logGroupName="group")
    logs.create_log_stream(**where)
    logs.put_log_events(**where, logEvents=[{"timestamp": int(time.time() * 1000), "message": "é"}])
    (event,) = logs.get_log_events(**where, startFromHead=True)["events"]
    assert event["message"] == "é"


def test_signatures_are_verified_here_too(connect):
    with pytest.raises(ClientError, match="InvalidSignatureException"):
        connect("logs", secret="other").describe_log_groups()
