"""Who signed a request? botocore's own signers compute its signature again.

A request is accepted if it was signed with the state directory's key, or with one that the
emulator issued (IAM's CreateAccessKey, STS's AssumeRole). Understood are the forms that AWS's SDKs
send over HTTP: Signature Version 4 in the header or in a presigned URL, and S3's older presigned
URL (HMAC-SHA1), which boto3's generate_presigned_url still makes.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import contextlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import urlsplit

from botocore.auth import HmacV1QueryAuth, S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from moto.core.request import Request
from moto.iam.access_control import CreateAccessKeyFailure, create_access_key
from moto.iam.models import get_account_id_from

from local_sagemaker.protocol.errors import AwsError, other_body

AUTHENTICATED = "local_sagemaker.authenticated"  # in environ: called once the key is verified
ALGORITHM = "AWS4-HMAC-SHA256"
TIME = "%Y%m%dT%H%M%SZ"
MAX_SKEW = timedelta(minutes=15)
MAX_EXPIRES = 7 * 24 * 3600  # seconds for which a presigned URL is valid
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
UNSIGNED = ("UNSIGNED-PAYLOAD", UNSIGNED_TRAILER)
SHA256 = re.compile("[0-9a-fA-F]{64}")
# What is wrong -> its code in S3, in the JSON protocols, in the query protocol (EC2 has one code).
CODES = {
    "unsigned": (
        *("AccessDenied", "MissingAuthenticationTokenException", "MissingAuthenticationToken"),
    ),
    "malformed": (
        *("AuthorizationHeaderMalformed", "IncompleteSignatureException", "IncompleteSignature"),
    ),
    "unknown": ("InvalidAccessKeyId", "UnrecognizedClientException", "InvalidClientTokenId"),
    "wrong": ("SignatureDoesNotMatch", "InvalidSignatureException", "SignatureDoesNotMatch"),
    "skewed": ("RequestTimeTooSkewed", "InvalidSignatureException", "SignatureDoesNotMatch"),
    "expired": ("AccessDenied", "InvalidSignatureException", "SignatureDoesNotMatch"),
}
NO_FORMS = (
    "The emulator takes no forms (presigned POST): give out a presigned PUT instead, by "
    "generate_presigned_url('put_object')."
)
REMEDY = "`local-sagemaker env` prints the keys of this emulator."
WRONG = (
    "The request signature we calculated does not match the signature you provided. Check your "
    f"AWS Secret Access Key and signing method. {REMEDY}"
)


class Refused(AwsError):
    """Why a signature is not accepted. kind: one of CODES."""

    def __init__(self, kind: str, message: str) -> None:
        s3, json, query = CODES[kind]
        codes = {"s3": s3, "json": json, "query": query, "ec2": "AuthFailure"}
        super().__init__(json, message, 403, codes)


@dataclass
class Signature:
    """What a request says about its signature.

    credentials: of the key that it names, once that is known. payload_hash: what the client says
    about the body, a SHA-256 or one of UNSIGNED; None if it says nothing, and the signature can
    only be verified with the body.
    """

    request: Request
    key_id: str
    date: str  # YYYYMMDD, of the credential's scope
    region: str
    service: str
    time: str  # 20261122T110000Z
    token: str = ""  # of temporary credentials
    value: str = ""
    signed_headers: list[str] = field(default_factory=list)
    expires: str | None = None  # seconds for which a presigned URL is valid
    payload_hash: str | None = None
    credentials: Credentials | None = None

    def verify(self, payload_hash: str) -> None:
        """Compare the signature with the one that the key makes. Raises Refused."""
        kind = _S3Signer if self.service == "s3" else _Signer
        signer = kind(self.credentials, self.service, self.region)
        signed = _as_signed(self, payload_hash)
        text = signer.string_to_sign(signed, signer.canonical_request(signed))
        _compare(signer.signature(text, signed), self.value)
        self.request.environ[AUTHENTICATED]()

    def verify_body(self, body: bytes) -> None:
        """Check that this body is the one that was signed. Raises AwsError."""
        body_hash = sha256(body).hexdigest()
        if self.payload_hash is None:
            self.verify(body_hash)
        elif self.payload_hash not in UNSIGNED and not _equal(body_hash, self.payload_hash):
            raise other_body()

    def authorization(self) -> str:
        """The Authorization header in which moto reads the key, the region and the service."""
        scope = f"{self.key_id}/{self.date}/{self.region}/{self.service}/aws4_request"
        return f"{ALGORITHM} Credential={scope}, SignedHeaders=host, Signature=verified"


def authenticate(request: Request, owner: Credentials) -> Signature:
    """Verify as much of a request's signature as can be verified before its body is read.

    The client is known afterwards, except where it does not state its body's hash (it does for S3,
    where bodies are large). owner: the key of the state directory. Raises AwsError.
    """
    in_query = "Authorization" not in request.headers
    old_url = in_query and "AWSAccessKeyId" in request.args and "Signature" in request.args
    if not old_url and (request.content_type or "").startswith("multipart/form-data"):
        raise AwsError("NotImplemented", NO_FORMS, 501)
    if old_url:
        return _verify_old_url(request, owner)
    service = scope(request)[1]
    signature = _parse(request, service)
    signature.credentials = _credentials(signature.key_id, signature.token, owner, service)
    _check_time(signature)
    signature.payload_hash = _payload_hash(signature)
    if signature.payload_hash is not None:
        signature.verify(signature.payload_hash)
    return signature


def scope(request: Request) -> tuple[str, str]:
    """The region and service that a request says it is signed for; nothing is verified.

    Without a signature: those that its form suggests.
    """
    fields = _fields(request.headers.get("Authorization", ""))
    credential = fields.get("Credential") or request.args.get("X-Amz-Credential", "")
    parts = credential.split("/")
    if len(parts) == 5:
        return parts[2], parts[3]
    form = (request.content_type or "").startswith("application/x-www-form-urlencoded")
    return "us-east-1", "query" if form else "s3"


def _fields(header: str) -> dict[str, str]:
    """NAME=value, NAME=value of an Authorization header."""
    pairs = [field.partition("=") for field in header.partition(" ")[2].split(",")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _parse(request: Request, service: str) -> Signature:
    header = request.headers.get("Authorization")
    if header:
        algorithm, fields = header.partition(" ")[0], _fields(header)
        time = request.headers.get("X-Amz-Date", "")
        token = request.headers.get("X-Amz-Security-Token", "")
    elif "X-Amz-Signature" in request.args:
        fields = {name.removeprefix("X-Amz-"): value for name, value in request.args.items()}
        algorithm, time = fields.get("Algorithm", ""), fields.get("Date", "")
        token = fields.get("Security-Token", "")
    else:
        message = "Access Denied" if service == "s3" else "Missing Authentication Token"
        raise Refused("unsigned", f"{message}: not signed. {REMEDY}")
    parts = fields.get("Credential", "").split("/")
    if algorithm != ALGORITHM or len(parts) != 5 or parts[4] != "aws4_request":
        expected = f"{ALGORITHM} Credential=KEY/DATE/REGION/SERVICE/aws4_request"
        raise Refused("malformed", f"Authorization lacks {expected}.")
    key_id, date, region, service, _ = parts
    signed_headers = fields.get("SignedHeaders", "").lower().split(";")
    expires = None if header else fields.get("Expires", "")
    # What a service acts on must be signed: otherwise a request that was seen could be changed.
    sent = {name for name, _ in _headers(request) if name.startswith("x-amz-")}
    if missing := {"host", *sent} - {*signed_headers, "x-amz-content-sha256"}:
        raise Refused("wrong", f"These headers must be signed: {', '.join(sorted(missing))}.")
    value = fields.get("Signature", "")
    return Signature(
        *(request, key_id, date, region, service, time, token, value, signed_headers, expires)
    )


def _check_time(signature: Signature) -> None:
    try:
        if not re.fullmatch(r"\d{8}T\d{6}Z", signature.time):
            raise ValueError(signature.time)
        signed = datetime.fromisoformat(signature.time)  # strptime takes fifty times as long
    except ValueError as error:
        raise Refused("malformed", "X-Amz-Date is missing, or not a time.") from error
    if signature.date != signature.time[:8]:
        raise Refused("malformed", "The scope has another date.")
    now, expires = datetime.now(UTC), signature.expires
    if expires is not None:
        if not re.fullmatch(r"\d{1,6}", expires) or not 0 < int(expires) <= MAX_EXPIRES:
            raise AwsError(
                "AuthorizationQueryParametersError", f"X-Amz-Expires must be 1 to {MAX_EXPIRES}."
            )
        if now > signed + timedelta(seconds=int(expires)) or signed > now + MAX_SKEW:
            raise Refused("expired", "Request has expired.")
    elif abs(now - signed) > MAX_SKEW:
        message = f"{signature.time} is not within 15 min. of {now.strftime(TIME)}"
        raise Refused("skewed", f"The request time is too far from the current time: {message}.")


def _payload_hash(signature: Signature) -> str | None:
    """What the client says about its body. Raises AwsError for a form that is not understood."""
    if signature.service == "s3" and signature.expires is not None:
        return "UNSIGNED-PAYLOAD"
    stated = signature.request.headers.get("X-Amz-Content-Sha256")
    if stated is None:
        if signature.service == "s3":
            message = "Missing required header for this request: x-amz-content-sha256"
            raise AwsError("InvalidRequest", message)
        return None
    if stated.startswith("STREAMING-AWS4-"):
        raise AwsError(
            "NotImplemented",
            f"{stated}: the emulator does not take chunks that are signed one by one. Sign the "
            "whole body, or switch chunked encoding off in the client.",
            501,
        )
    if stated not in UNSIGNED and not SHA256.fullmatch(stated):
        message = f"x-amz-content-sha256 must be {', '.join(UNSIGNED)}, or a valid sha256 value."
        raise AwsError("InvalidArgument", message)
    return stated


class _Signer(SigV4Auth):
    """botocore's, for the headers that the client signed and no others."""

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        headers = HTTPHeaders()
        for name in request.context["signed_headers"]:
            headers[name] = request.headers.get(name, "")
        return headers


class _S3Signer(_Signer, S3SigV4Auth):
    pass


def _as_signed(signature: Signature, payload_hash: str) -> AWSRequest:
    """The request for botocore's signer, as it was before it had a signature."""
    request = signature.request
    path, query = _address(request)
    query = "&".join(pair for pair in query.split("&") if not pair.startswith("X-Amz-Signature="))
    signed = AWSRequest(request.method, f"http://localhost{path}?{query}")
    for name, value in _headers(request):
        if name in signature.signed_headers:
            signed.headers[name] = value
    del signed.headers["X-Amz-Content-SHA256"]
    signed.headers["X-Amz-Content-SHA256"] = payload_hash
    signed.context["timestamp"] = signature.time
    signed.context["signed_headers"] = signature.signed_headers
    return signed


class _OldSigner(HmacV1QueryAuth):
    def _get_date(self) -> str:
        return self._expires  # as sent; botocore's own would begin from now


def _verify_old_url(request: Request, owner: Credentials) -> Signature:
    """Verify S3's presigned URL from before Signature Version 4."""
    query = request.args.to_dict()
    token, expires = query.get("x-amz-security-token", ""), query.get("Expires", "")
    credentials = _credentials(query["AWSAccessKeyId"], token, owner, "s3")
    if not re.fullmatch(r"\d{1,12}", expires):
        raise AwsError("AccessDenied", "Query-string authentication requires Expires.", 403)
    headers = HTTPHeaders()
    for name, value in {**query, **dict(_headers(request))}.items():
        if name.startswith("x-amz-") or name in ("content-md5", "content-type"):
            headers[name] = value
    path, raw_query = _address(request)
    host = request.headers["Host"].partition(":")[0]
    if host.endswith(".localhost"):  # the host names the bucket
        path = f"/{host.removesuffix('.localhost')}{path}"
    signature = _OldSigner(credentials, expires).get_signature(
        request.method, urlsplit(f"/?{raw_query}"), headers, auth_path=path
    )
    _compare(signature, query["Signature"])
    now = datetime.now(UTC)
    if now.timestamp() > int(expires):
        raise Refused("expired", "Request has expired.")
    request.environ[AUTHENTICATED]()
    time, key_id = now.strftime(TIME), credentials.access_key
    verified = Signature(request, key_id, time[:8], "us-east-1", "s3", time, token)
    verified.payload_hash = "UNSIGNED-PAYLOAD"
    return verified


def _address(request: Request) -> tuple[str, str]:
    """Path and query of a request, as they came."""
    raw = request.environ["RAW_URI"]
    path, _, query = raw.partition("#")[0].partition("?")
    if not raw.startswith("/"):  # http://host/path
        path = urlsplit(path).path
    return path, query


def _headers(request: Request) -> Iterator[tuple[str, str]]:
    """(name in lower case, value) of a request's headers."""
    for name, value in request.headers.items():
        with contextlib.suppress(UnicodeError):  # WSGI reads Latin-1, and clients sign UTF-8
            value = value.encode("latin-1").decode()
        yield name.lower(), value


def _credentials(key_id: str, token: str, owner: Credentials, service: str) -> Credentials:
    """The secret of a key that the emulator knows."""
    if _equal(key_id, owner.access_key) and not token:
        return owner
    headers = {"X-Amz-Security-Token": token} if token else {}
    try:
        account = get_account_id_from(key_id)
        return create_access_key(account, "aws", key_id, headers).create_credentials()
    except CreateAccessKeyFailure as error:
        message = {
            "s3": "The AWS Access Key Id you provided does not exist in our records.",
            "ec2": "AWS was not able to validate the provided access credentials.",
        }.get(service, "The security token included in the request is invalid.")
        raise Refused("unknown", f"{message} {REMEDY}") from error


def _compare(expected: str, received: str) -> None:
    if not _equal(expected, received):
        raise Refused("wrong", WRONG)


def _equal(first: str, second: str) -> bool:
    return hmac.compare_digest(first.encode(), second.encode())
