"""Downloading, against a server on loopback that misbehaves in the known ways."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from data_prep_helpers import serve, status, sums, tree

from data_prep import download
from data_prep.channels import DataError

DATA = bytes(range(256)) * 2000  # 512,000 bytes: several blocks
RIGHT = sums({"f": DATA})


def get(server, cache, mirrors=("a",)):
    urls = [server.url + path for path in mirrors]
    return download.fetch(RIGHT, None, cache, urls, quiet=True)["f"]


def test_whole_file_and_only_once(server, tmp_path):
    server.answers["/a/f"] = [serve(DATA)]
    for _ in range(2):
        assert get(server, tmp_path).read_bytes() == DATA
    assert tree(tmp_path) == ["f"]
    assert server.paths() == ["/a/f"], "a cached file must not be downloaded again"
    assert server.requests[0][1]["Accept-Encoding"] == "identity"


BAD = {
    "not there": (status(404), "404 Client Error"),
    "other bytes": (serve(DATA[:-1] + b"x"), "does not match the known hash"),
    "cut short": (serve(DATA[:1000], length=len(DATA)), "IncompleteRead"),
    "silent": (serve(DATA[:1000], length=len(DATA), hang=True), "Read timed out"),
}


@pytest.mark.parametrize("failure", BAD)
def test_a_bad_mirror_is_left_for_the_next(server, tmp_path, failure, monkeypatch):
    answer, message = BAD[failure]
    server.answers["/a/f"] = [answer]
    started = time.monotonic()
    if failure == "silent":  # else a machine that is busy for a moment would be called silent
        monkeypatch.setattr(download, "TIMEOUT", (3, 3))
    with pytest.raises(DataError) as error:
        get(server, tmp_path)
    assert message in str(error.value) and "--source FOLDER" in str(error.value)
    assert time.monotonic() - started < 25, "the server is silent for 30 s"
    assert tree(tmp_path) == [], "a file that is not whole and right stayed behind"
    server.answers["/b/f"] = [serve(DATA)]
    assert get(server, tmp_path, ("a", "b")).read_bytes() == DATA
    assert tree(tmp_path) == ["f"]


def test_nobody_listens(tmp_path):
    with pytest.raises(DataError, match=r"(?s)refused.*Without a network, give a folder .* f: "):
        download.fetch(RIGHT, "http://127.0.0.1:9", tmp_path, (), quiet=True)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_command_leaves_nothing(server, tmp_path, sent):
    name = "train-images-idx3-ubyte.gz"
    server.answers[f"/{name}"] = [serve(DATA[:1000], length=len(DATA), hang=True)]
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
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
