"""A full disk, a state of another version, a state that is cut off: said, and nothing lost."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from moto_life import lives

from local_sagemaker.moto_backend.state import StateError
from local_sagemaker.storage import files
from local_sagemaker.storage.files import replace

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


def test_a_save_that_failed_changes_nothing(life):
    with life() as now:
        now.s3.create_bucket(Bucket="bucket")
        now.save()
        now.s3.create_bucket(Bucket="refused")
        now.client("iam").create_role(RoleName="refused", AssumeRolePolicyDocument="{}")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(OSError, match="No space left"):
            _fill_the_disk(patch)
            now.save()
        assert now.client("iam").list_roles()["Roles"] == []
        now.save()
    with life() as now:
        assert [one["Name"] for one in now.s3.list_buckets()["Buckets"]] == ["bucket"]
        assert now.client("iam").list_roles()["Roles"] == []


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
    assert "`local-sagemaker stop --forget`" in str(caught.value)
    assert path.read_bytes() == damaged
