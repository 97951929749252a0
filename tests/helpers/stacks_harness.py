"""CloudFormation in this process, as the emulator has it, and sessions whose calls fail."""

from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import boto3
import moto
from botocore.exceptions import EndpointConnectionError

REGION = "us-east-1"


@contextmanager
def aws(monkeypatch):
    """moto instead of AWS, with what the emulator adds to it."""
    import_module("local_sagemaker.moto_backend.cloudformation")  # slow
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    with moto.mock_aws():
        yield


@cache
def shared() -> boto3.Session:
    """One for all: each loads the models of the services anew, which takes most of the time."""
    return boto3.Session("test", "test", region_name=REGION)


@cache
def plain_client(service):
    """A client whose calls get through."""
    return shared().client(service)


def session(seat, fault=None):
    """A session for the code under test. fault: what `Fault.watch` belongs to."""

    def client(service):
        if not fault:
            return plain_client(service)
        made = shared().client(service)
        fault.watch(made)
        return made

    where = {"region": REGION, "target": "local", "job_prefix": f"workshop-{seat}-"}
    return SimpleNamespace(seat=seat, client=client, **where)


def recording(seat, calls: list, target="local"):
    """A session whose clients add (service, operation, request) to calls, and answer."""

    def client(service, **_):
        made = shared().client(service)
        call = made._make_api_call

        def noted(operation, request):
            calls.append((service, operation, request))
            return call(operation, request)

        made._make_api_call = noted
        return made

    made = session(seat)
    made.target, made.client, made.boto_session = target, client, SimpleNamespace(client=client)
    return made


class Fault:
    """The connection is lost at the n-th call: "before-call" it got there, or "after-call"."""

    def __init__(self, number: int, when: str) -> None:
        self.number, self.when, self.calls, self.struck = number, when, 0, ""

    def watch(self, client) -> None:
        client.meta.events.register(self.when, self._count)

    def _count(self, model, **_):
        self.calls += 1
        if self.calls == self.number:
            self.struck = model.name
            raise EndpointConnectionError(endpoint_url="https://cloudformation.test")
