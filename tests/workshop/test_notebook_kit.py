"""The kit in the bucket: packed from git, put there once, and what is said when it cannot be."""

import io
import subprocess
import tarfile

import pytest
import stacks_harness

from workshop.account import notebook_instance as kit
from workshop.account import stacks


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small git checkout in the kit's place."""
    root = tmp_path / "kit"
    root.mkdir()
    program = root / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (root / "not-committed").write_text("private")
    person = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (["init", "-q"], ["add", "program"], [*person, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", root, *command], check=True)
    monkeypatch.setattr(kit, "ROOT", root)
    return root


@pytest.fixture
def session(monkeypatch):
    with stacks_harness.aws(monkeypatch):
        found = stacks_harness.session("kit")
        stacks.deploy(found, ("storage",), lambda _: None)
        yield found


def held(session):
    bucket = stacks.outputs(session, ("storage",))["BucketName"]
    return session.client("s3").get_object(Bucket=bucket, Key="kit/kit.tar.gz")


def test_the_kit_is_what_was_committed_and_can_be_run(session, checkout):
    kit.upload_kit(session)
    with tarfile.open(fileobj=io.BytesIO(held(session)["Body"].read())) as archive:
        assert archive.getnames() == ["program"]
        assert archive.getmember("program").mode & 0o100


def test_the_same_kit_is_put_there_once_and_a_changed_one_again(session, checkout):
    kit.upload_kit(session)
    first = held(session)["LastModified"], held(session)["Metadata"]
    calls = []
    session.client("s3").meta.events.register_first(
        "before-call.s3.PutObject", lambda **_: calls.append("put"), unique_id="counting"
    )
    kit.upload_kit(session)
    assert (held(session)["LastModified"], held(session)["Metadata"]) == first and not calls
    (checkout / "program").write_text("#!/bin/sh\nexit 1\n")
    person = ["-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", "-C", checkout, *person, "commit", "-qam", "y"], check=True)
    kit.upload_kit(session)
    assert calls == ["put"]


@pytest.mark.parametrize("missing", ["git", "checkout"])
def test_without_git_it_says_where_else_the_kit_may_be(session, monkeypatch, tmp_path, missing):
    monkeypatch.setattr(kit, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if missing == "git":
        monkeypatch.setattr(kit.shutil, "which", lambda _: None)
    with pytest.raises(stacks.StackError, match="--parameter Kit=https"):
        kit.upload_kit(session)
