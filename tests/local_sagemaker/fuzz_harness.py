"""A fuzzer of the endpoint's HTTP face: requests that are wrong in every way, by a seed."""

from __future__ import annotations

import json
import random
import socket
import string
from collections.abc import Iterator

from botocore.model import ListShape, MapShape, Shape, StructureShape
from raw_http import head, signed

from endpoint_harness import request
from local_sagemaker.protocol.validation import operation

ANSWER_SECONDS = 60
OPERATIONS = (
    "CreateTrainingJob",
    "DescribeTrainingJob",
    "ListTrainingJobs",
    "StopTrainingJob",
    "DeleteTrainingJob",
    "AddTags",
    "ListTags",
    "CreateModel",
    "CreateEndpoint",
    "CreateTransformJob",
)
ODD_TEXTS = ("", "\0", "\ud800", "é" * 70, "a" * 70_000, "../..", "s3://", "s3://a/../b", "-" * 63)
ODD_NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**63, 10**30, -(10**30), 1e308, 0.5, float("nan"))
METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS", "TRACE", "BREW")


class Fuzzer:
    """Requests from one seed. Each is the bytes to send, as a client that knows no HTTP would.

    env: the endpoint's keys; nine of ten requests are signed, so that they get past the door.
    """

    def __init__(self, seed: int, env: dict[str, str]) -> None:
        self.random, self.env = random.Random(seed), env

    def requests(self, count: int) -> Iterator[bytes]:
        kinds = (self.call, self.call, self.member, self.member, self.json, self.s3, self.http)
        for _ in range(count):
            yield self.random.choice([*kinds, self.chunks, self.form, self.cut_off])()

    def call(self) -> bytes:
        """Right HTTP and JSON; the members are of random types and values."""
        name = self.random.choice(OPERATIONS)
        return self.post(f"SageMaker.{name}", self.dump(self.value(operation(name).input_shape)))

    def member(self) -> bytes:
        """A right CreateTrainingJob, but for one member."""
        body = request(f"fuzzed-{self.random.randrange(10**9)}")
        body["StoppingCondition"]["MaxRuntimeInSeconds"] = 1
        shape = operation("CreateTrainingJob").input_shape
        name = self.random.choice(list(shape.members))
        body[name] = self.value(shape.members[name])
        return self.post("SageMaker.CreateTrainingJob", self.dump(body))

    def json(self) -> bytes:
        """Bodies that are nearly JSON, targets that are nearly operations, any content type."""
        body = self.random.choice([b"{", b"[]", b"null", b"{}" * 3, b"\xff\xfe", b"[" * 9000, b""])
        body += self.random.choice([b"", b" ", bytes([self.random.randrange(256)])])
        target = self.random.choice(["", "x", ".", "SageMaker.", "SageMaker.Create", "a.b.c", "é"])
        kind = self.random.choice(["text/html", "application/x-amz-json-1.1", "", "x" * 999, "é"])
        return self.post(target, body, kind, self.random.choice(["sagemaker", "s3", "iam", "x"]))

    def s3(self) -> bytes:
        path = "".join(
            self.random.choices("/%.?&=+0A:\\é~lessons-data", k=self.random.randrange(60))
        )
        query = self.random.choice(
            ["", "?acl", "?uploads", "?partNumber=x", "?list-type=2&max-keys=x"]
        )
        method, address, body = self.random.choice(METHODS), f"/{path}{query}", self.garbage()
        text = f"{method} {address} HTTP/1.1\r\nContent-Length: {len(body)}\r\n"
        text += head(self.env, "s3", method=method, path=address) + "\r\n"
        return text.encode("utf-8", "replace") + body

    def http(self) -> bytes:
        """What is hardly HTTP."""
        return self.random.choice(
            [
                self.garbage() + b"\r\n\r\n",
                b"GET / HTTP/9.9\r\n\r\n",
                b"GET http://[ HTTP/1.1\r\nHost: [\r\n\r\n",
                b"GET //[::1/x HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\nHost\r\n: \r\n\r\n",
                b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
                b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 200 + b"\r\n",
                b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
                b"POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}",
                b"PUT /%s HTTP/1.0\r\n\r\n" % self.garbage().replace(b"\n", b""),
            ]
        )

    def chunks(self) -> bytes:
        size = self.random.choice([b"-5", b"zz", b"", b"ffffffffffffffff", b"5", b"0"])
        end = self.random.choice([b"", b"\r\n0\r\n\r\n", b"x"])
        head = self.head("SageMaker.ListTrainingJobs") + b"Transfer-Encoding: chunked\r\n\r\n"
        return head + size + b"\r\n" + b"{}   " + end

    def form(self) -> bytes:
        """Calls of services that moto answers, with random members."""
        action = self.random.choice(["CreateRole", "GetCallerIdentity", "RunInstances", "No", ""])
        body = f"Action={action}&Version={self.random.choice(['2010-05-08', 'x'])}&{self.text()}"
        service = self.random.choice(["iam", "sts", "ec2", "cloudformation"])
        raw = body.encode("utf-8", "replace")
        return self.post("", raw, "application/x-www-form-urlencoded", service)

    def cut_off(self) -> bytes:
        """The beginning of a right request."""
        whole = self.call()
        return whole[: self.random.randrange(len(whole))]

    def post(
        self, target: str, body: bytes, kind="application/x-amz-json-1.1", service="sagemaker"
    ):
        head = self.head(target, service) + f"Content-Type: {kind}\r\n".encode()
        return head + b"Content-Length: %d\r\n\r\n" % len(body) + body

    def head(self, target: str, service: str = "sagemaker") -> bytes:
        more = {"X_Amz_Target": target} if target else {}
        found = signed(self.env, service, **more)
        if self.random.random() > 0.9:
            del found["Authorization"]
        lines = "".join(f"{name}: {value}\r\n" for name, value in found.items())
        return f"POST / HTTP/1.1\r\n{lines}".encode()

    def value(self, shape: Shape, depth: int = 0) -> object:
        """A value for a member: mostly of its type, often at or over its limits."""
        if self.random.random() < 0.08 or depth > 6:
            return self.random.choice([None, [], {}, True, self.text(), self.number()])
        if isinstance(shape, StructureShape):
            names = [
                n
                for n in shape.members
                if n in shape.required_members or self.random.random() < 0.3
            ]
            return {name: self.value(shape.members[name], depth + 1) for name in names}
        if isinstance(shape, ListShape):
            return [self.value(shape.member, depth + 1) for _ in range(self.random.randrange(4))]
        if isinstance(shape, MapShape):
            return {self.text(): self.value(shape.value, depth + 1) for _ in range(2)}
        if shape.type_name == "boolean":
            return self.random.random() < 0.5
        if shape.type_name != "string":
            return self.number()
        return self.random.choice([*shape.enum, self.text(), "s3://lessons-data/data", "a"])

    def text(self) -> str:
        if self.random.random() < 0.4:
            return self.random.choice(ODD_TEXTS)
        return "".join(self.random.choices(string.printable, k=self.random.randrange(40)))

    def number(self) -> float:
        return self.random.choice([*ODD_NUMBERS, self.random.randrange(100)])

    def garbage(self) -> bytes:
        return self.random.randbytes(self.random.randrange(200))

    @staticmethod
    def dump(value: object) -> bytes:
        return json.dumps(value).encode()


def answer_to(port: int, raw: bytes) -> bytes:
    """Send the bytes, close our side, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as connection:
        received = b""
        try:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536):
                received += data
        except ConnectionError:  # it had enough before we had sent all
            pass
    return received


def complaint(sent: bytes, received: bytes) -> str | None:
    """What is wrong with an answer; None if it is one that an AWS service gives."""
    if not received:
        head, gap, _ = sent.partition(b"\r\n\r\n")
        # No whole head came, so there was no request; HTTP/0.9 has a body and no head.
        return (
            "no answer"
            if gap and head.startswith((b"POST / HTTP/1.1\r\nHost", b"PUT /l"))
            else None
        )
    head, gap, body = received.partition(b"\r\n\r\n")
    status = head.split(b" ")[1:2]
    if not gap or not head.startswith(b"HTTP/1.") or not status or not status[0].isdigit():
        return None if sent.split(b"\r\n")[0].count(b" ") < 2 else "no HTTP"
    if int(status[0]) < 400 or sent.startswith(b"HEAD "):
        return None
    if b"<html" in body.lower() or b"Traceback (most recent" in body:
        return "a page or a stack trace"
    told = b'"__type"' in body or b"<Code>" in body or b'"message"' in body.lower()
    return None if told else "an error that is not AWS-shaped"
