"""Fetch one file from the first mirror that has it: checked, resumed, all or nothing."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests
import urllib3

from data_prep.errors import DataError
from data_prep.progress import bar

BLOCK = 1 << 16


@dataclass(frozen=True)
class Policy:
    """How patient a download is.

    attempts: tries per mirror; connect_timeout, read_timeout: seconds without an answer
    or without a byte; pause: seconds before the second try, doubled each time.
    """

    attempts: int = 3
    connect_timeout: float = 10.0
    read_timeout: float = 30.0
    pause: float = 1.0


class _Passing(Exception):
    """A failure that may be gone at the next try: same mirror again."""


class _Lasting(Exception):
    """A failure that will not go away: next mirror."""


@dataclass
class _Partial:
    """The bytes received so far from one mirror, and how to ask for the rest."""

    path: Path
    validator: str = ""
    total: int | None = None
    size: int = field(default=0)

    def reset(self) -> None:
        self.path.write_bytes(b"")
        self.validator, self.total, self.size = "", None, 0


def fetch(
    urls: Sequence[str],
    target: Path,
    check: Callable[[Path], None],
    max_bytes: int,
    *,
    policy: Policy | None = None,
    quiet: bool = False,
) -> Path:
    """Download `target` from the first of `urls` that serves the right bytes.

    `check(path)` raises DataError when the content is wrong. A file longer than
    `max_bytes` is refused. `target` appears only when it is whole and checked. Raises
    DataError that lists what each mirror answered.
    """
    policy = policy or Policy()
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.part-", dir=target.parent)
    os.close(handle)
    partial = _Partial(Path(name))
    answers = []
    try:
        for url in urls:
            partial.reset()
            try:
                _from_mirror(url, partial, max_bytes, policy, target.name, quiet)
                check(partial.path)
            except (_Lasting, DataError) as error:
                answers.append(f"  {url}: {error}")
                continue
            partial.path.chmod(0o644)
            partial.path.replace(target)
            return target
    finally:
        partial.path.unlink(missing_ok=True)
    raise DataError(f"could not download {target.name}:\n" + "\n".join(answers))


def _from_mirror(
    url: str, partial: _Partial, max_bytes: int, policy: Policy, name: str, quiet: bool
) -> None:
    """Fill `partial` from one mirror, trying again after passing failures."""
    for attempt in range(policy.attempts):
        if attempt:
            time.sleep(policy.pause * 2 ** (attempt - 1))
        try:
            with requests.Session() as session:
                _receive(session, url, partial, max_bytes, policy, name, quiet)
            return
        except _Passing as error:
            last = error
    raise _Lasting(f"{last} ({policy.attempts} tries)")


def _receive(
    session: requests.Session,
    url: str,
    partial: _Partial,
    max_bytes: int,
    policy: Policy,
    name: str,
    quiet: bool,
) -> None:
    # identity: a server may otherwise gzip (or un-gzip) on the way, and the bytes that
    # arrive would not be those that the checksum was made of.
    headers = {"Accept-Encoding": "identity"}
    if partial.size and partial.validator:
        headers |= {"Range": f"bytes={partial.size}-", "If-Range": partial.validator}
    else:
        partial.reset()
    try:
        with session.get(
            url,
            headers=headers,
            stream=True,
            timeout=(policy.connect_timeout, policy.read_timeout),
        ) as response:
            _accept(response, partial)
            _copy(response, partial, max_bytes, name, quiet)
    except (requests.Timeout, urllib3.exceptions.TimeoutError) as error:
        raise _Passing(f"no answer for {policy.read_timeout:g} s") from error
    except (requests.ConnectionError, urllib3.exceptions.HTTPError) as error:
        raise _Passing(_why(error)) from error
    except requests.RequestException as error:
        raise _Lasting(str(error)) from error
    if partial.total is not None and partial.size != partial.total:
        raise _Passing(f"cut short: {partial.size:,} of {partial.total:,} bytes")


def _accept(response: Any, partial: _Partial) -> None:
    """Look at the answer's head; start over unless it continues what is there."""
    status = response.status_code
    if status in (408, 425, 429) or status >= 500:
        raise _Passing(f"HTTP {status}")
    if status == 206 and _starts_at(response, partial.size):
        return
    if status != 200:
        partial.reset()
        # A refused or shifted range is the resume's fault, not the mirror's.
        raise (_Passing if status in (206, 416) else _Lasting)(f"HTTP {status} {response.reason}")
    partial.reset()
    # A weak ETag (W/...) does not promise equal bytes, so it cannot guard a resume.
    etag = response.headers.get("ETag", "")
    partial.validator = "" if etag.startswith("W/") else etag
    length = response.headers.get("Content-Length", "")
    partial.total = int(length) if length.isdigit() else None


def _starts_at(response: Any, offset: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {offset}-")


def _copy(response: Any, partial: _Partial, max_bytes: int, name: str, quiet: bool) -> None:
    if (partial.total or 0) > max_bytes:
        raise _Lasting(f"too large: {partial.total:,} bytes, expected at most {max_bytes:,}")
    with partial.path.open("ab") as file, bar(partial.total, name, quiet=quiet) as shown:
        shown.update(partial.size)
        while block := response.raw.read(BLOCK, decode_content=False):
            partial.size += len(block)
            if partial.size > max_bytes:
                raise _Lasting(f"too large: more than {max_bytes:,} bytes")
            file.write(block)
            shown.update(len(block))


def _why(error: Exception) -> str:
    """The useful core of a nested connection error."""
    text = str(error)
    if "Name or service not known" in text or "NameResolution" in text:
        return "the host name is not known (no network?)"
    if "refused" in text:
        return "connection refused"
    if "IncompleteRead" in text:
        return "cut short: the connection ended too early"
    return f"connection failed ({type(error).__name__})"
