"""A full disk, a state of another version, a state that is cut off: said, and nothing lost."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest
from botocore.credentials import Credentials
from moto_life import lives
from raw_http import signed

from local_sagemaker.disk import files
from local_sagemaker.disk.files import replace
from local_sagemaker.moto_services.state import StateError
from local_sagemaker.protocol.bodies import RequestBody
from local_sagemaker.server.app import Application

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def life(tmp_path):
    return lives(tmp_path)


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_full_disk_keeps_the_old_file(tmp_path, monkeypatch, where):
    path = tmp_path / "moto.pickle"
    replace(path, b"old")
    _fill_the_disk(monkeypatch, (files.os, "fsync") if where == "fsync" else (Path, "replace"))
    with pytest.raises(OSError, match="No space left"):
        replace(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["moto.pickle"]


def _fill_the_disk(monkeypatch, target=(files.os, "fsync")) -> None:
    def full(*_, **__):
        raise FULL

    monkeypatch.setattr(*target, full)


def test_a_save_that_failed_is_done_by_the_next(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
            _fill_the_disk(patch)
            now.save()
        now.state.save()
    with life() as now:
        assert now.s3.list_buckets()["Buckets"][0]["Name"] == "bucket"


def test_a_write_that_cannot_be_kept_is_refused(life, monkeypatch):
    """Over HTTP: an error in S3's form, and nothing that claims to have worked."""
    key = Credentials("KEY", "secret")
    env = {"AWS_ACCESS_KEY_ID": key.access_key, "AWS_SECRET_ACCESS_KEY": key.secret_key}
    environ = {"REQUEST_METHOD": "PUT", "PATH_INFO": "/a-bucket", "RAW_URI": "/a-bucket"}
    environ |= {"SERVER_NAME": "127.0.0.1", "SERVER_PORT": "1", "wsgi.url_scheme": "http"}
    environ["wsgi.input"] = RequestBody(io.BytesIO(), "0", chunked=False)
    for name, value in signed(env, "s3", b"", "PUT", "/a-bucket").items():
        environ["HTTP_" + name.upper().replace("-", "_")] = value
    started = []
    with life() as now:
        application = Application({}, now.state, key)
        _fill_the_disk(monkeypatch)
        body = b"".join(application(environ, lambda *told: started.append(told)))
    assert [status for status, _ in started] == ["507 InsufficientStorage"]
    assert b"<Code>InsufficientStorage</Code><Message>The local endpoint cannot write" in body
    assert b"the disk is full" in body and b"What it had before is kept" in body


DAMAGES = [
    (lambda raw: b"moto 0.0.1\n" + raw.split(b"\n", 1)[1], "was written by moto 0.0.1"),
    (lambda raw: raw[: len(raw) // 2], "cannot be read"),
    (lambda raw: b"", "was written by something else"),
    (lambda raw: raw.replace(b"FakeBucket", b"FakeBasket"), "cannot be read"),
]


@pytest.mark.parametrize(("damage", "says"), DAMAGES, ids=["version", "cut", "empty", "class"])
def test_a_state_that_cannot_be_used(life, tmp_path, damage, says):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.save()
    path = tmp_path / "moto.pickle"
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(StateError, match=says) as caught, life():
        pass
    assert "`workshop down --forget`" in str(caught.value)
    assert path.read_bytes() == damaged
