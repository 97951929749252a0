"""Which of SageMaker's operations are answered: operations.toml, as sets and sentences.

An operation is run by this package (managers.py), kept by moto, answered with an empty list, or
refused. moto alone would answer more, and say "Completed" of what it has not run.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from functools import cache
from pathlib import Path

from moto.core.request import Request
from moto.core.routing import RestRouter
from moto.core.utils import get_service_model
from werkzeug.exceptions import NotFound

_TABLE = tomllib.loads(Path(__file__).with_name("operations.toml").read_text())
KEPT = frozenset(_TABLE["kept"])
EMPTY = frozenset(_TABLE["empty"])
JOB_MEMBERS: dict[str, str] = _TABLE["job_members"]
NOT_ALLOWED: dict[str, str] = _TABLE["not_allowed"]
REST_SERVICES = ("sagemaker-runtime", "sagemaker-metrics")  # they name no operation in a header


def refusal(operation: str) -> str:
    """What is said to who calls an operation that is refused."""
    sentences = (row["sentence"] for row in _TABLE["refused"] if re.search(row["names"], operation))
    return f"The emulator {next(sentences)} ({operation})"


@cache
def _routers() -> list[RestRouter]:
    return [RestRouter(get_service_model(service)) for service in REST_SERVICES]


def operation_at(request: Request) -> str | None:
    """The operation of REST_SERVICES that a request calls; None if it is none of theirs."""
    for router in _routers():
        with contextlib.suppress(NotFound):
            return router.match(request)[0].name
    return None
