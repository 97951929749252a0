"""HTTP as no AWS client would send it, but signed as they sign."""

import http.client
import json
import socket
from urllib.parse import quote, unquote_to_bytes

from botocore.auth import S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

HOST = "127.0.0.1"


class UnhashedS3(S3SigV4Auth):
    """S3's signer for a body that the signature says nothing of."""

    def payload(self, request: AWSRequest) -> str:
        return "UNSIGNED-PAYLOAD"


def signed(
    env: dict[str, str],
    service: str = "sagemaker",
    body: bytes | None = None,
    method: str = "POST",
    path: str = "/",
    **headers: str,
) -> dict[str, str]:
    """Headers of a request with its signature. env: of `local-sagemaker env`.

    body: None signs a request whatever its body will be. headers: "_" stands for "-".
    """
    key = Credentials(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"])
    sent = {"Host": HOST} | {name.replace("_", "-"): value for name, value in headers.items()}
    raw_path, _, query = path.partition("?")
    parts = [
        "=".join(quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~") for text in pair)
        for pair in (parameter.partition("=")[::2] for parameter in query.split("&") if parameter)
    ]
    raw_path = quote(unquote_to_bytes(raw_path), safe="/~") if service == "s3" else raw_path
    request = AWSRequest(method, f"http://{HOST}{raw_path}?{'&'.join(parts)}", sent, body)
    if body is None:
        request.headers["X-Amz-Content-SHA256"] = "UNSIGNED-PAYLOAD"
    kind = SigV4Auth if service != "s3" else UnhashedS3 if body is None else S3SigV4Auth
    kind(key, service, "us-east-1").add_auth(request)
    return dict(request.headers.items())


def head(env: dict[str, str], service: str = "sagemaker", **options: str) -> str:
    """The same as lines of a request, each with its end."""
    return "".join(
        f"{name}: {value}\r\n" for name, value in signed(env, service, **options).items()
    )


def call(emulator, target: str, body: object = b"", service: str = "sagemaker", **headers):
    """POST to the emulator; (status, content type, answer's text). service "": unsigned."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(HOST, emulator.running.port, timeout=60)
    sent = {"X_Amz_Target": target, "Content_Type": "application/x-amz-json-1.1"} | headers
    if service:
        sent = signed(emulator.env, service, raw, **sent)
    connection.request(
        "POST", "/", raw, {name.replace("_", "-"): value for name, value in sent.items()}
    )
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, answer.headers["Content-Type"], text


def error(emulator, target: str, body: object = b"", service: str = "sagemaker", **headers):
    """The same for a refusal in JSON: (status, code, message)."""
    status, kind, text = call(emulator, target, body, service, **headers)
    assert kind == "application/x-amz-json-1.1", text
    body = json.loads(text)
    return status, body["__type"], body["message"]


def raw(emulator, head: str, body: bytes = b"") -> str:
    """Send these very bytes; what comes back."""
    lines = "\r\n".join([*head.strip().splitlines(), "Connection: close"])
    return answer_to(emulator.running.port, lines.encode() + b"\r\n\r\n" + body).decode()


def answer_to(port: int, raw: bytes) -> bytes:
    """Send the bytes, close our side, and return all that comes back."""
    with socket.create_connection((HOST, port), timeout=60) as connection:
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
    aws_shaped = b'"__type"' in body or b"<Code>" in body or b'"message"' in body.lower()
    return None if aws_shaped else "an error that is not AWS-shaped"
