"""S3's objects on disk: what is kept, what goes, and what it costs."""

import hashlib
import sqlite3

import pytest

from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.s3.store import FORMAT, ObjectStore

MEGABYTE = 1024**2


@pytest.fixture
def store(tmp_path):
    store = ObjectStore(tmp_path)
    yield store
    store.index.close()


def put(store, key: str, body: bytes, versioned: bool = False):
    segment, _ = store.blobs.write([body])
    etag = hashlib.md5(body, usedforsecurity=False).hexdigest()
    return store.put("bucket", key, versioned, [segment], etag, {"Metadata": {"a": "b"}})


def content(store, stored) -> bytes:
    return b"".join(store.blobs.read(stored.segments, 0, stored.size))


def files(store) -> list[bytes]:
    return sorted(path.read_bytes() for path in store.blobs.folder.iterdir())


def test_everything_outlives_the_process(tmp_path):
    store = ObjectStore(tmp_path)
    put(store, "replaced", b"one")
    put(store, "replaced", b"two")
    versions = [put(store, "versioned", body, versioned=True) for body in (b"1", b"2")]
    store.put("bucket", "gone", True, [], "", {}, marker=True)
    store.index.close()
    again = ObjectStore(tmp_path)
    replaced = again.latest("bucket", "replaced")
    assert (content(again, replaced), replaced.fields) == (b"two", {"Metadata": {"a": "b"}})
    assert content(again, again.latest("bucket", "versioned")) == b"2"
    assert content(again, again.version("bucket", "versioned", versions[0].version)) == b"1"
    assert again.latest("bucket", "gone").marker
    assert files(again) == [b"1", b"2", b"two"]
    again.index.close()


def test_what_a_crash_left_is_removed(tmp_path):
    store = ObjectStore(tmp_path)
    put(store, "kept", b"kept")
    store.blobs.write([b"an upload that never came to its end"])
    store.index.close()
    again = ObjectStore(tmp_path)
    assert files(again) == [b"kept"]
    again.index.close()


def test_what_is_replaced_or_removed_does_not_fill_the_disk(store):
    for number in range(5):  # a checkpoint, for example
        put(store, "checkpoint", str(number).encode())
    put(store, "gone", b"gone")
    store.remove("bucket", "gone", "null")
    assert files(store) == [b"4"]


def test_a_reader_keeps_what_is_removed_meanwhile(store):
    stored = put(store, "key", b"a" * 3 * MEGABYTE)
    reading = store.blobs.read(stored.segments, 0, stored.size)
    first = next(reading)
    put(store, "key", b"new")
    assert len(first) + sum(len(piece) for piece in reading) == 3 * MEGABYTE
    reading.close()
    assert files(store) == [b"new"]


def test_a_copy_outlives_its_original(store):
    original = put(store, "original", b"body")
    store.put("bucket", "copy", False, store.blobs.link(original.segments), "etag", {})
    store.remove("bucket", "original", "null")
    assert content(store, store.latest("bucket", "copy")) == b"body"


def test_a_range_reads_its_own_bytes_alone(store, monkeypatch):
    parts = [store.blobs.write([bytes([n]) * MEGABYTE])[0] for n in range(4)]
    stored = store.put("bucket", "parts", False, parts, "etag", {})
    opened = []
    real = type(store.blobs.folder).open
    monkeypatch.setattr(
        type(store.blobs.folder),
        "open",
        lambda path, *args, **kwargs: opened.append(path.name) or real(path, *args, **kwargs),
    )
    start = 2 * MEGABYTE - 2
    assert b"".join(store.blobs.read(stored.segments, start, 4)) == b"\1\1\2\2"
    assert opened == [parts[1][0], parts[2][0]]


def test_an_upload_in_parts(store):
    upload = store.begin_upload("bucket", "big", {})
    for number, body in ((1, b"replaced"), (1, b"one"), (2, b"two"), (3, b"left out")):
        store.put_part(upload.key, number, *store.blobs.write([body]))
    assert files(store) == [b"left out", b"one", b"two"]
    chosen = [part.segments[0] for part in store.parts(upload.key)[:2]]
    stored = store.put("bucket", "big", False, chosen, "etag-2", {}, upload=upload.key)
    assert content(store, stored) == b"onetwo"
    assert files(store) == [b"one", b"two"]
    assert store.upload(upload.key) is None
    # One that is given up leaves nothing.
    upload = store.begin_upload("bucket", "other", {})
    store.put_part(upload.key, 1, *store.blobs.write([b"one"]))
    store.end_upload(upload.key)
    assert (files(store), store.uploads("bucket")) == ([b"one", b"two"], [])


def test_a_write_which_fails_leaves_no_file(store):
    def pieces():
        yield b"half"
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        store.blobs.write(pieces())
    assert files(store) == []


def test_another_format_and_a_damaged_index_are_refused(tmp_path):
    ObjectStore(tmp_path).index.close()
    base = sqlite3.connect(tmp_path / "objects.sqlite")
    base.execute(f"PRAGMA user_version={FORMAT + 1}")
    base.close()
    with pytest.raises(EmulatorError, match=r"has format 4.*local-sagemaker stop --forget"):
        ObjectStore(tmp_path)
    (tmp_path / "objects.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(EmulatorError, match=r"cannot be read.*local-sagemaker stop --forget"):
        ObjectStore(tmp_path)
