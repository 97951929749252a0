"""Archives are unpacked in their folder only, also by Pythons whose tarfile has no filters."""

import contextlib
import io
import tarfile

import pytest

from local_sagemaker.storage import archives


def member(name, kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


GOOD = [
    member("1/variables", tarfile.DIRTYPE),
    member("1/saved_model.pb"),
    member("latest", tarfile.SYMTYPE, "1/saved_model.pb"),
    member("again", tarfile.LNKTYPE, "1/saved_model.pb"),
]
BAD = {
    "climbs": [member("../out.txt")],
    "climbs within": [member("1/../../out.txt")],
    "a link outwards": [member("link", tarfile.SYMTYPE, "../..")],
    "an absolute link": [member("link", tarfile.SYMTYPE, "/etc")],
    "a hard link outwards": [member("link", tarfile.LNKTYPE, "../secret.txt")],
    "a device": [member("null", tarfile.CHRTYPE)],
    "a pipe": [member("pipe", tarfile.FIFOTYPE)],
}


@pytest.fixture(params=["filters", "none"])
def folder(request, tmp_path, monkeypatch):
    """An empty folder beside a secret; with and without filters in tarfile."""
    if request.param == "none":
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    elif not hasattr(tarfile, "data_filter"):
        pytest.skip("this Python's tarfile has no filters")
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "in").mkdir()
    return tmp_path / "in"


def unpack(members, folder, limit=10**6):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member in members:
            member.size = 4 if member.isreg() else 0
            archive.addfile(member, io.BytesIO(b"data") if member.isreg() else None)
    packed.seek(0)
    with tarfile.open(fileobj=packed) as archive:
        archives.unpack(archive, folder, limit)


def test_one_that_unpacks_to_too_much_leaves_nothing(folder):
    with pytest.raises(tarfile.TarError, match="unpacks to more than"):
        unpack(GOOD, folder, limit=3)
    assert list(folder.iterdir()) == []


def test_a_right_one(folder):
    unpack(GOOD, folder)
    assert (folder / "1" / "variables").is_dir()
    assert [(folder / name).read_text() for name in ("latest", "again")] == ["data", "data"]


@pytest.mark.parametrize("label", BAD)
def test_a_wrong_one_leaves_nothing_outside(folder, label):
    with pytest.raises(tarfile.TarError):
        unpack(BAD[label], folder)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["in", "secret.txt"]
    assert (folder.parent / "secret.txt").read_text() == "secret"
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


def test_an_absolute_name_is_refused_or_made_relative(folder, tmp_path):
    target = tmp_path / "absolute.txt"
    with contextlib.suppress(tarfile.TarError):
        unpack([member(str(target))], folder)
    assert not target.exists()
