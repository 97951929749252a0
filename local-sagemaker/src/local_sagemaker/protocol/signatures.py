"""Who signed a request? Signatures are computed again with botocore's own signers, and compared.

A call is taken if its signature was made with the state directory's key, or with one that this
emulator issued (IAM's CreateAccessKey, STS's AssumeRole). AWS's forms are known: Signature
Version 4 in the header or in a presigned URL, and S3's older presigned URL (HMAC-SHA1), which
boto3's generate_presigned_url still makes. Forms (presigned POST) are refused.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html
"""

from __future__ import annotations

import dataclasses
import hmac
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import parse_qsl, quote, unquote_to_bytes, urlsplit

from botocore.auth import EMPTY_SHA256_HASH, HmacV1QueryAuth, S3SigV4Auth, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from moto.core.request import PRESERVED_HEADER_NAMES_ENVIRON_KEY
from moto.core.utils import utcnow
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from local_sagemaker.protocol.answers import protocol
from local_sagemaker.protocol.errors import AwsError

SIGNED = "local_sagemaker.signed"  # in environ: to be called once it is known who asks
ALGORITHM = "AWS4-HMAC-SHA256"
TIME = "%Y%m%dT%H%M%SZ"
SKEW = timedelta(minutes=15)
LONGEST = 7 * 24 * 3600  # seconds that a presigned URL may hold
UNSIGNED = ("UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
SIGNED_CHUNKS = (
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
)
TRAILER_SIGNATURE = "x-amz-trailer-signature"
CHUNK_LINE = re.compile(rb"([0-9a-fA-F]{1,15});chunk-signature=([0-9a-f]{64})\r\n")
# What is wrong -> the status and code of S3, of the JSON protocols, of the query protocol. EC2 has
# one for all.
CODES = {
    "unsigned": (
        "403 AccessDenied",
        "403 MissingAuthenticationTokenException",
        "403 MissingAuthenticationToken",
    ),
    "malformed": (
        "400 AuthorizationHeaderMalformed",
        "400 IncompleteSignatureException",
        "400 IncompleteSignature",
    ),
    "unknown": (
        "403 InvalidAccessKeyId",
        "400 UnrecognizedClientException",
        "403 InvalidClientTokenId",
    ),
    "wrong": (
        "403 SignatureDoesNotMatch",
        "400 InvalidSignatureException",
        "403 SignatureDoesNotMatch",
    ),
    "skewed": (
        "403 RequestTimeTooSkewed",
        "400 InvalidSignatureException",
        "403 SignatureDoesNotMatch",
    ),
    "expired": ("403 AccessDenied", "400 InvalidSignatureException", "403 SignatureDoesNotMatch"),
    "expired token": ("400 ExpiredToken", "400 ExpiredTokenException", "403 ExpiredToken"),
}
EC2_CODE = "401 AuthFailure"
NO_FORMS = (
    "The emulator takes no forms (presigned POST): give out a presigned PUT instead, by "
    "generate_presigned_url('put_object')."
)
REMEDY = "`local-sagemaker env` prints the keys of this emulator."
WRONG = (
    "The request signature we calculated does not match the signature you provided. Check your "
    f"AWS Secret Access Key and signing method. {REMEDY}"
)


class Refused(Exception):
    """Why a signature is not accepted. what: one of CODES."""

    def __init__(self, what: str, message: str) -> None:
        super().__init__(message)
        self.what = what

    def as_aws(self, environ: dict, service: str) -> AwsError:
        """The error in the protocol of the request."""
        spoken = protocol(environ, service)
        columns = dict(zip(("s3", "json", "query"), CODES[self.what], strict=True))
        status, code = columns.get(spoken, EC2_CODE).split()
        return AwsError(code, str(self), int(status))


@dataclasses.dataclass
class Claim:
    """What a request says of its signature. token: of temporary credentials, or ""."""

    key_id: str
    date: str  # YYYYMMDD, of the credential's scope
    region: str
    service: str
    names: list[str]  # the headers that are signed
    signature: str
    time: str  # 20261122T110000Z
    token: str
    seconds: str | None  # how long a presigned URL holds; None for a signature in the header


def check_head(environ: dict, own: Credentials) -> Signature:
    """Check all of a request's signature that can be checked before the body is read.

    It is then known who asks, but where the client does not state its body's hash (it does for
    S3, where bodies are large). own: the key of the state directory. Raises AwsError.
    """
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    old = "HTTP_AUTHORIZATION" not in environ and {"AWSAccessKeyId", "Signature"} <= {*query}
    if not old and environ.get("CONTENT_TYPE", "").startswith("multipart/form-data"):
        raise AwsError("NotImplemented", NO_FORMS, 501)
    service = "s3" if old else scope(environ)[1]
    try:
        if old:
            return _check_old_url(environ, query, own)
        claim = _claim(environ, query, service)
        secret = _credentials(claim.key_id, claim.token, own, service)
        _check_time(claim)
        return Signature(claim, secret, environ)
    except Refused as error:
        raise error.as_aws(environ, service) from error


class Signature:
    """The signature of a request whose key is known. region, service: what it was made for."""

    def __init__(
        self, claim: Claim, secret: Credentials, environ: dict, checked: bool = False
    ) -> None:
        self.claim, self.environ = claim, environ
        self.region, self.service = claim.region, claim.service
        kind = _S3Signer if claim.service == "s3" else _Signer
        self.signer = kind(secret, claim.service, claim.region)
        self.stated = environ.get("HTTP_X_AMZ_CONTENT_SHA256")
        if claim.seconds is not None and claim.service == "s3":
            self.stated = "UNSIGNED-PAYLOAD"
        elif self.stated is None and claim.service == "s3":
            what = "Missing required header for this request: x-amz-content-sha256"
            raise AwsError("InvalidRequest", what)
        if self.stated is not None and not checked:
            words = (*UNSIGNED, *SIGNED_CHUNKS)
            if self.stated not in words and not re.fullmatch("[0-9a-fA-F]{64}", self.stated):
                raise AwsError(
                    "InvalidArgument",
                    f"x-amz-content-sha256 must be {', '.join(words)}, or a valid sha256 value.",
                )
            self._check(self.stated)

    def check_body(self, body: bytes) -> None:
        """Check that a body which is not in chunks is the one signed. Raises AwsError."""
        if self.stated is None:
            try:
                self._check(sha256(body).hexdigest())
            except Refused as error:
                raise error.as_aws(self.environ, self.service) from error
        elif self.stated not in (*UNSIGNED, *SIGNED_CHUNKS) and not _equal(
            sha256(body).hexdigest(), self.stated
        ):
            raise AwsError(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )

    def authorization(self) -> str:
        """What moto reads in the header of a request: the key, the region and the service."""
        scope = f"{self.claim.key_id}/{self.claim.date}/{self.region}/{self.service}/aws4_request"
        return f"{ALGORITHM} Credential={scope}, SignedHeaders=host, Signature=verified"

    def _check(self, body_hash: str) -> None:
        self.request = _as_sent(self.environ, self.claim, body_hash)
        text = self.signer.string_to_sign(self.request, self.signer.canonical_request(self.request))
        if not _equal(self.signer.signature(text, self.request), self.claim.signature):
            raise Refused("wrong", WRONG)
        self.environ[SIGNED]()

    @property
    def signs_chunks(self) -> bool:
        """Whether the body comes in chunks with signatures of their own."""
        return self.stated in SIGNED_CHUNKS

    def check_chunk(self, line: bytes, hashed: str, before: str) -> str:
        """Check one chunk: its signature is over its bytes and the signature before it.

        line: the one that begins it. hashed: SHA-256 of its bytes, in hexadecimal. before: the
        signature of the chunk before; of the first one, "". Returns this one's.
        """
        found = CHUNK_LINE.match(line)
        if found is None:
            raise AwsError("IncompleteBody", "The body is not in signed chunks.")
        hashes = [EMPTY_SHA256_HASH, hashed]
        return self._check_next("PAYLOAD", before or self.claim.signature, hashes, found[2])

    def check_trailers(self, trailers: dict[str, str], before: str) -> None:
        """Check the headers after the last chunk, where this signature is over them, too.

        before: the last chunk's signature.
        """
        if self.stated == SIGNED_CHUNKS[1]:
            said = trailers.pop(TRAILER_SIGNATURE, "").encode()
            lines = "".join(f"{name}:{value}\n" for name, value in trailers.items())
            self._check_next("TRAILER", before, [sha256(lines.encode("latin-1")).hexdigest()], said)

    def _check_next(self, kind: str, before: str, hashes: list[str], said: bytes) -> str:
        """Check a signature that follows another; returns it."""
        text = [f"{ALGORITHM}-{kind}", self.claim.time, self.signer.credential_scope(self.request)]
        expected = self.signer.signature("\n".join([*text, before, *hashes]), self.request)
        if not _equal(expected, said.decode("latin-1")):
            raise Refused("wrong", WRONG).as_aws(self.environ, self.service)
        return expected


class _Signer(SigV4Auth):
    """botocore's; it signs the headers that the client signed, and no others."""

    def headers_to_sign(self, request: AWSRequest) -> HTTPHeaders:
        found = HTTPHeaders()
        for name in request.context["names"]:
            found[name] = request.headers.get(name, "")
        return found


class _S3Signer(_Signer, S3SigV4Auth):
    pass


class _OldSigner(HmacV1QueryAuth):
    def _get_date(self) -> str:
        return self._expires  # as sent; botocore's own would begin from now


def _check_old_url(environ: dict, query: dict[str, str], own: Credentials) -> Signature:
    """S3's presigned URL from before Signature Version 4."""
    token, expires = query.get("x-amz-security-token", ""), query.get("Expires", "")
    secret = _credentials(query["AWSAccessKeyId"], token, own, "s3")
    if not re.fullmatch(r"\d{1,12}", expires):
        raise AwsError("AccessDenied", "Query-string authentication requires Expires.", 403)
    headers = HTTPHeaders()
    for name, value in {**query, **dict(_headers(environ))}.items():
        if name.startswith("x-amz-") or name in ("content-md5", "content-type"):
            headers[name] = value
    path, raw_query = _address(environ)
    host = environ["HTTP_HOST"].partition(":")[0]
    if host.endswith(".localhost"):  # the bucket's name is in the host's
        path = f"/{host.removesuffix('.localhost')}{path}"
    signature = _OldSigner(secret, expires).get_signature(
        environ["REQUEST_METHOD"], urlsplit(f"/?{raw_query}"), headers, auth_path=path
    )
    if not _equal(signature, query["Signature"]):
        raise Refused("wrong", WRONG)
    now = datetime.now(UTC)
    if now.timestamp() > int(expires):
        raise Refused("expired", "Request has expired.")
    environ[SIGNED]()
    time = now.strftime(TIME)
    claim = Claim(secret.access_key, time[:8], "us-east-1", "s3", [], "", time, token, expires)
    return Signature(claim, secret, environ, checked=True)


def scope(environ: dict) -> tuple[str, str]:
    """The region and service that a request says it is signed for; nothing is verified.

    Without a signature: those that its form suggests.
    """
    query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
    parts = _parts(environ.get("HTTP_AUTHORIZATION", ""))
    scoped = (parts.get("Credential") or query.get("X-Amz-Credential", "")).split("/")
    if len(scoped) == 5:
        return scoped[2], scoped[3]
    form = environ.get("CONTENT_TYPE", "").startswith("application/x-www-form-urlencoded")
    return "us-east-1", "query" if form else "s3"


def _parts(header: str) -> dict[str, str]:
    """NAME=value, NAME=value of an Authorization header."""
    pieces = [one.partition("=") for one in header.partition(" ")[2].split(",")]
    return {name.strip(): value.strip() for name, _, value in pieces}


def _claim(environ: dict, query: dict[str, str], service: str) -> Claim:
    header = environ.get("HTTP_AUTHORIZATION")
    if header:
        given, algorithm = _parts(header), header.partition(" ")[0]
        time = environ.get("HTTP_X_AMZ_DATE", "")
        token = environ.get("HTTP_X_AMZ_SECURITY_TOKEN", "")
    elif "X-Amz-Signature" in query:
        given = {name.removeprefix("X-Amz-"): value for name, value in query.items()}
        algorithm, time = given.get("Algorithm"), given.get("Date", "")
        token = given.get("Security-Token", "")
    else:
        message = "Access Denied" if service == "s3" else "Missing Authentication Token"
        raise Refused("unsigned", f"{message}: not signed. {REMEDY}")
    scoped = given.get("Credential", "").split("/")
    if algorithm != ALGORITHM or len(scoped) != 5 or scoped[4] != "aws4_request":
        where = f"{ALGORITHM} Credential=KEY/DATE/REGION/SERVICE/aws4_request"
        raise Refused("malformed", f"Authorization lacks {where}.")
    claim = Claim(
        *scoped[:4],
        names=given.get("SignedHeaders", "").lower().split(";"),
        signature=given.get("Signature", ""),
        time=time,
        token=token,
        seconds=None if header else given.get("Expires", ""),
    )
    # What a service acts on must be signed: else whoever sees a request could change it.
    sent = {name for name, _ in _headers(environ) if name.startswith("x-amz-")}
    left_out = {"host", *sent} - {*claim.names, "x-amz-content-sha256"}
    if left_out:
        raise Refused("wrong", f"These headers must be signed: {', '.join(sorted(left_out))}.")
    return claim


def _check_time(claim: Claim) -> None:
    try:
        if not re.fullmatch(r"\d{8}T\d{6}Z", claim.time):
            raise ValueError(claim.time)
        signed = datetime.fromisoformat(claim.time)  # strptime takes fifty times as long
    except ValueError as error:
        raise Refused("malformed", "X-Amz-Date is missing, or not a time.") from error
    if claim.date != claim.time[:8]:
        raise Refused("malformed", "The scope has another date.")
    now = datetime.now(UTC)
    if claim.seconds is not None:
        if not re.fullmatch(r"\d{1,6}", claim.seconds) or not 0 < int(claim.seconds) <= LONGEST:
            raise AwsError(
                "AuthorizationQueryParametersError", f"X-Amz-Expires must be 1 to {LONGEST}."
            )
        if now > signed + timedelta(seconds=int(claim.seconds)) or signed > now + SKEW:
            raise Refused("expired", "Request has expired.")
    elif abs(now - signed) > SKEW:
        message = f"{claim.time} is not within 15 min. of {now.strftime(TIME)}"
        raise Refused("skewed", f"The request time is too far from the current time: {message}.")


def _as_sent(environ: dict, claim: Claim, body_hash: str) -> AWSRequest:
    """The request as botocore's signer takes it. Path and query are encoded as AWS has them."""
    path, query = _address(environ)
    if claim.service == "s3":
        path = quote(unquote_to_bytes(path), safe="/~")
    pairs = [one.partition("=") for one in query.split("&") if one]
    query = "&".join(
        f"{_encoded(name)}={_encoded(value)}"
        for name, _, value in pairs
        if name != "X-Amz-Signature"
    )
    request = AWSRequest(environ["REQUEST_METHOD"], f"http://localhost{path}?{query}")
    for name, value in _headers(environ):
        if name in claim.names:
            request.headers[name] = value
    del request.headers["X-Amz-Content-SHA256"]
    request.headers["X-Amz-Content-SHA256"] = body_hash
    request.context |= {"timestamp": claim.time, "names": claim.names}
    return request


def _address(environ: dict) -> tuple[str, str]:
    """Path and query of a request, as they came."""
    raw = environ["RAW_URI"]
    path, _, query = raw.partition("#")[0].partition("?")
    if not raw.startswith("/"):  # http://host/path
        path = urlsplit(path).path
    return path, query


def _encoded(text: str) -> str:
    return quote(unquote_to_bytes(text.replace("+", " ")), safe="-_.~")


def _headers(environ: dict) -> Iterator[tuple[str, str]]:
    """(name in small letters, value) of a request's headers."""
    spelled = environ.get(PRESERVED_HEADER_NAMES_ENVIRON_KEY, {})  # those with an underscore
    for key, value in environ.items():
        if key.startswith("HTTP_") or (key in ("CONTENT_TYPE", "CONTENT_LENGTH") and value):
            name = spelled.get(key) or key.removeprefix("HTTP_").replace("_", "-")
            yield name.lower(), _text(value)


def _text(value: str) -> str:
    """A header's value: WSGI reads bytes as Latin-1, and clients sign UTF-8."""
    try:
        return value.encode("latin-1").decode()
    except UnicodeError:
        return value


def _credentials(key_id: str, token: str, own: Credentials, service: str) -> Credentials:
    """The secret of a key that this emulator knows."""
    if _equal(key_id, own.access_key):
        found: Credentials | None = own
    else:
        found = _of_user(key_id) or _of_role(key_id)
    if found is None or not _equal(found.token or "", token):
        message = {
            "s3": "The AWS Access Key Id you provided does not exist in our records.",
            "ec2": "AWS was not able to validate the provided access credentials.",
        }.get(service, "The security token included in the request is invalid.")
        raise Refused("unknown", f"{message} {REMEDY}")
    return found


def _of_user(key_id: str) -> Credentials | None:
    """A key that IAM's CreateAccessKey gave out."""
    for account in list(iam_backends.values()):
        for backend in list(account.values()):
            for user in list(backend.users.values()):
                for key in list(user.access_keys):
                    if key.access_key_id == key_id and key.status == "Active":
                        return Credentials(key_id, key.secret_access_key)
    return None


def _of_role(key_id: str) -> Credentials | None:
    """A key that STS's AssumeRole gave out."""
    for account in list(sts_backends.values()):
        for backend in list(account.values()):
            for role in list(backend.assumed_roles):
                if role.access_key_id != key_id:
                    continue
                if utcnow() > role.expiration:
                    message = "The security token included in the request is expired"
                    raise Refused("expired token", message)
                return Credentials(key_id, role.secret_access_key, role.session_token)
    return None


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())
