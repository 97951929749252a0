"""Requests that a web page could cause are refused, whatever they say.

Any page in the user's browser may send requests to this address: by a form or a picture, and
with a host name of its own that suddenly resolves to 127.0.0.1 (DNS rebinding) it may read the
responses, too. Signatures stop these; what is refused here never comes that far.
"""

from __future__ import annotations

import re

from werkzeug.wrappers import Request

from local_sagemaker.cluster.spec import GATEWAY
from local_sagemaker.protocol.errors import AwsError

HOSTS = {"127.0.0.1", "localhost", "[::1]", GATEWAY}  # GATEWAY: as a job sees the emulator
HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^:@/\s]+)(:[0-9]{1,5})?")
# moto's own pages and the metadata of an EC2 instance: no calls of AWS's.
PAGES = ("/moto-api", "/favicon.ico", "/latest/meta-data/", "/latest/api/")


def refuse(request: Request) -> None:
    """Raise AwsError (AccessDenied) for what no AWS client sends."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if "Origin" in request.headers or site != "none":
        raise _denied("The emulator takes no requests of web pages.")
    if not _is_here(request):
        raise _denied(
            f"The emulator is not called {request.headers.get('Host', '')[:100]}: ask for "
            "127.0.0.1 or localhost."
        )
    if request.path.startswith(PAGES):
        raise _denied(f"{request.path[:100]} is not an AWS address.")
    if "Action" in request.args:
        raise _denied("The emulator takes an Action in a POST request's body only.")


def _is_here(request: Request) -> bool:
    """Whether the Host header names this machine."""
    match = HOST.fullmatch(request.headers.get("Host", "").lower())
    return match is not None and (match[1] in HOSTS or match[1].endswith(".localhost"))


def _denied(message: str) -> AwsError:
    return AwsError("AccessDenied", message, 403)
