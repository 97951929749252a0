"""Downloading, against a server on loopback that misbehaves in the known ways."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from data_prep_helpers import cut, serve, status

from data_prep.download import fetch
from data_prep.errors import DataError
from data_prep.sources import check_sha256

DATA = bytes(range(256)) * 2000  # 512,000 bytes: several blocks
RIGHT = check_sha256(hashlib.sha256(DATA).hexdigest())
LIMIT = 1_000_000


def get(server, target, hasty, paths=("a",), check=RIGHT, limit=LIMIT):
    urls = [server.url + path for path in paths]
    return fetch(urls, target, check, limit, policy=hasty, quiet=True)


def test_whole_file(server, tmp_path, hasty, tree):
    server.answers["/a"] = [serve(DATA)]
    assert get(server, tmp_path / "f", hasty).read_bytes() == DATA
    assert tree(tmp_path) == ["f"]
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o644


def test_second_mirror_after_404(server, tmp_path, hasty):
    server.answers["/b"] = [serve(DATA)]
    get(server, tmp_path / "f", hasty, paths=("a", "b"))
    assert server.paths() == ["/a", "/b"], "a 404 must not be tried again"


def test_second_mirror_after_wrong_bytes(server, tmp_path, hasty):
    server.answers["/a"] = [serve(DATA[:-1] + b"x")]
    server.answers["/b"] = [serve(DATA)]
    assert get(server, tmp_path / "f", hasty, paths=("a", "b")).read_bytes() == DATA
    assert server.paths() == ["/a", "/b"]


def test_wrong_bytes_everywhere(server, tmp_path, hasty, tree):
    server.answers["/a"] = [serve(b"an error page")]
    with pytest.raises(DataError, match=r"/a: wrong content: SHA-256 is .* expected .*13 bytes"):
        get(server, tmp_path / "f", hasty)
    assert tree(tmp_path) == []


def test_busy_server_is_tried_again(server, tmp_path, hasty):
    server.answers["/a"] = [status(503), status(429), serve(DATA)]
    get(server, tmp_path / "f", hasty)
    assert len(server.requests) == 3


def test_truncated_answers_are_resumed(server, tmp_path, hasty):
    server.answers["/a"] = [
        cut(DATA, 300_000, etag='"v1"'),
        serve(DATA, etag='"v1"', ranges=True),
    ]
    assert get(server, tmp_path / "f", hasty).read_bytes() == DATA
    start = int(server.requests[1][1]["Range"].removeprefix("bytes=").rstrip("-"))
    assert 0 < start <= 300_000
    assert server.requests[1][1]["If-Range"] == '"v1"'


def test_no_resume_when_the_file_changed(server, tmp_path, hasty):
    server.answers["/a"] = [
        cut(b"old" * 100_000, 150_000, etag='"v1"'),
        serve(DATA, etag='"v2"', ranges=True),
    ]
    assert get(server, tmp_path / "f", hasty).read_bytes() == DATA


def test_a_range_may_come_in_pieces(server, tmp_path, hasty):
    """A server may answer with less than was asked for; its own length is then right."""

    def piece(handler, closing):
        start = int(handler.headers["Range"].removeprefix("bytes=").rstrip("-"))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{start + 999}/{len(DATA)}")
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(DATA[start : start + 1000])

    server.answers["/a"] = [
        cut(DATA, 300_000, etag='"v1"'),
        piece,
        serve(DATA, etag='"v1"', ranges=True),
    ]
    assert get(server, tmp_path / "f", hasty).read_bytes() == DATA
    assert len(server.requests) == 3


def test_no_resume_from_one_mirror_to_another(server, tmp_path, hasty):
    """Equal ETags of two servers promise nothing about equal bytes."""
    server.answers["/a"] = [cut(b"other" * 100_000, 300_000, etag='"v1"'), status(503)]
    server.answers["/b"] = [serve(DATA, etag='"v1"', ranges=True)]
    assert get(server, tmp_path / "f", hasty, paths=("a", "b")).read_bytes() == DATA
    assert server.paths() == ["/a", "/a", "/a", "/b"]


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_no_resume_without_a_strong_etag(server, tmp_path, hasty, etag):
    server.answers["/a"] = [cut(DATA, 300_000, etag=etag), serve(DATA, ranges=True)]
    assert get(server, tmp_path / "f", hasty).read_bytes() == DATA
    assert "Range" not in server.requests[1][1]


def test_always_truncated(server, tmp_path, hasty, tree):
    server.answers["/a"] = [cut(DATA, 1000)]
    with pytest.raises(DataError, match=r"cut short.*\(3 tries\)"):
        get(server, tmp_path / "f", hasty)
    assert tree(tmp_path) == []


def test_stalled_server(server, tmp_path, hasty, tree):
    server.answers["/a"] = [cut(DATA, 1000, stall=True)]
    server.answers["/b"] = [serve(DATA)]
    get(server, tmp_path / "f", hasty, paths=("a", "b"))
    assert server.paths() == ["/a", "/a", "/a", "/b"]
    with pytest.raises(DataError, match=r"no answer for 0\.3 s \(3 tries\)"):
        get(server, tmp_path / "g", hasty)
    assert tree(tmp_path) == ["f"]


def test_nobody_listens(tmp_path, hasty, tree):
    with pytest.raises(DataError, match="connection refused"):
        fetch(["http://127.0.0.1:9/a"], tmp_path / "f", RIGHT, LIMIT, policy=hasty, quiet=True)
    assert tree(tmp_path) == []


@pytest.mark.parametrize("announced", [True, False])
def test_too_large(server, tmp_path, hasty, tree, announced):
    def endless(handler, closing):
        handler.send_response(200)
        handler.end_headers()
        handler.wfile.write(DATA)

    server.answers["/a"] = [serve(DATA) if announced else endless]
    # An announced length is refused before a byte is stored, an unannounced one on the way.
    message = "expected at most 511,999" if announced else "more than 511,999 bytes"
    with pytest.raises(DataError, match=f"too large: .*{message}"):
        get(server, tmp_path / "f", hasty, limit=len(DATA) - 1)
    assert tree(tmp_path) == []


def test_content_encoding_does_not_change_the_bytes(server, tmp_path, hasty):
    packed = gzip.compress(DATA)
    server.answers["/a"] = [serve(packed, header="gzip")]
    check = check_sha256(hashlib.sha256(packed).hexdigest())
    assert get(server, tmp_path / "f", hasty, check=check).read_bytes() == packed
    assert server.requests[0][1]["Accept-Encoding"] == "identity"


def test_an_older_file_survives_a_failed_download(server, tmp_path, hasty):
    (tmp_path / "f").write_text("older")
    with pytest.raises(DataError, match="HTTP 404"):
        get(server, tmp_path / "f", hasty)
    assert (tmp_path / "f").read_text() == "older"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_leaves_nothing(server, tmp_path, tree, sent):
    server.answers["/train-images-idx3-ubyte.gz"] = [cut(DATA, 1000, stall=True)]
    command = [sys.executable, "-m", "data_prep", "mnist", "--source", server.url]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "data" / "mnist")],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        stderr=subprocess.PIPE,
        # A process started from a background job may ignore Ctrl-C; this one must not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        assert server.started.wait(60)
        process.send_signal(sent)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode not in (0, None)
    assert b"Traceback" not in errors
    assert tree(tmp_path) == ["data"], "temporary files stayed behind"
