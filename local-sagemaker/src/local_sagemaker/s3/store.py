"""Objects, their versions and unfinished uploads: an index in SQLite, bytes in `Blobs`.

A change is on disk when its method returns, so a killed process loses nothing that it
acknowledged. The cost of a change does not depend on how many objects there are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from local_sagemaker.emulator_error import EmulatorError
from local_sagemaker.s3.blobs import Blobs, Segment
from local_sagemaker.storage.files import full_disk_as_os_error

FORMAT = 3
SCHEMA = """
CREATE TABLE versions (
    number INTEGER PRIMARY KEY,      -- newer versions of a key have higher numbers
    bucket TEXT NOT NULL,
    key TEXT NOT NULL,
    version TEXT NOT NULL,           -- "null" where the bucket has no versions
    latest INTEGER NOT NULL,
    marker INTEGER NOT NULL,         -- 1: a delete marker
    modified REAL NOT NULL,          -- seconds since 1970
    size INTEGER NOT NULL,
    etag TEXT NOT NULL,
    segments TEXT NOT NULL,          -- JSON: [[file, bytes], ...]
    fields TEXT NOT NULL             -- JSON: what the client stated, by S3's names
);
CREATE UNIQUE INDEX latest ON versions (bucket, key) WHERE latest;
CREATE UNIQUE INDEX by_version ON versions (bucket, key, version);
CREATE INDEX by_age ON versions (bucket, key, number DESC);
"""
LAST = b"\xff"  # no byte of UTF-8: with it a text sorts after all that begin like it
# An unfinished upload is an object of this bucket, whose key is its id, and its parts are those of
# a bucket of their own: no bucket of S3's has a slash in its name.
UPLOADS = "/uploads"
NULL = "null"  # the version of an object in a bucket without versions
ROW = "version, latest, marker, modified, size, etag, segments, fields, key, number"


@dataclasses.dataclass(frozen=True)
class Stored:
    """A version of an object; or an unfinished upload (fields: bucket, key, fields), or its part
    (key: its number)."""

    version: str
    latest: bool
    marker: bool
    modified: float
    size: int
    etag: str
    segments: list[Segment]
    fields: dict
    key: str
    number: int

    @property
    def quoted_etag(self) -> str:
        return f'"{self.etag}"'


class ObjectStore:
    """Every bucket's objects. `lock` is held while the index is asked or changed."""

    def __init__(self, directory: Path) -> None:
        """Open or create it. Raises EmulatorError for one of another format, or damaged."""
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lock = threading.RLock()
        self.blobs = Blobs(directory / "blobs")
        path = directory / "objects.sqlite"
        try:
            with full_disk_as_os_error():
                self._open(path)
        except sqlite3.DatabaseError as error:
            raise EmulatorError(
                f"{path} cannot be read ({error}). Start afresh with "
                "`local-sagemaker stop --forget`."
            ) from error

    def _open(self, path: Path) -> None:
        self.index = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.index.execute("PRAGMA journal_mode=WAL")
        self.index.execute("PRAGMA synchronous=FULL")
        (version,) = self.index.execute("PRAGMA user_version").fetchone()
        if not version:
            self.index.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version={FORMAT}; COMMIT;")
        elif version != FORMAT:
            raise EmulatorError(
                f"{path} has format {version}, and this release reads {FORMAT}. "
                "Start afresh with `local-sagemaker stop --forget`."
            )
        self.blobs.keep_only(self._used())

    def _used(self) -> set[str]:
        rows = self.index.execute("SELECT segments FROM versions")
        return {name for (text,) in rows for name, _ in json.loads(text)}

    @contextlib.contextmanager
    def _change(self) -> Iterator[list[Segment]]:
        """A transaction. Yields a list to put segments into which are unwanted if it succeeds."""
        unwanted: list[Segment] = []
        with full_disk_as_os_error(), self.lock, self.index:
            self.index.execute("BEGIN IMMEDIATE")
            yield unwanted
        self.blobs.remove(unwanted)

    def _first(self, sql: str, *values: object) -> Stored | None:
        return next(iter(self._rows(sql, *values)), None)

    def latest(self, bucket: str, key: str) -> Stored | None:
        """The newest version of an object, which may be a delete marker."""
        return self._first("bucket=? AND key=? AND latest", bucket, key)

    def version(self, bucket: str, key: str, version: str) -> Stored | None:
        return self._first("bucket=? AND key=? AND version=?", bucket, key, version)

    def put(
        self,
        bucket: str,
        key: str,
        versioned: bool,
        segments: list[Segment],
        etag: str,
        fields: dict,
        marker: bool = False,
        upload: str | None = None,
    ) -> Stored:
        """Make a new version the newest one. versioned: older ones stay.

        upload: the finished upload which these segments come from; it ends with this change.
        """
        version = uuid.uuid4().hex if versioned else NULL
        size, modified = sum(size for _, size in segments), _now()
        with self._change() as unwanted:
            if upload:
                used = {name for name, _ in segments}
                uploaded = [segment for part in self.parts(upload) for segment in part.segments]
                unwanted += [segment for segment in uploaded if segment[0] not in used]
                self._forget_upload(upload)
            if not versioned:
                self._remove(bucket, key, NULL, unwanted)
            self.index.execute(
                "UPDATE versions SET latest=0 WHERE bucket=? AND key=? AND latest", (bucket, key)
            )
            added = self.index.execute(
                "INSERT INTO versions (bucket, key, version, latest, marker, modified, size, etag,"
                " segments, fields) VALUES (?,?,?,1,?,?,?,?,?,?)",
                (
                    *(bucket, key, version, int(marker), modified, size, etag),
                    *(json.dumps(segments), json.dumps(fields)),
                ),
            )
        number = added.lastrowid or 0
        return Stored(version, True, marker, modified, size, etag, segments, fields, key, number)

    def remove(self, bucket: str, key: str, version: str) -> Stored | None:
        """Remove one version for good; what it was, or None. The next newest becomes latest."""
        with self._change() as unwanted:
            return self._remove(bucket, key, version, unwanted)

    def _remove(
        self, bucket: str, key: str, version: str, unwanted: list[Segment]
    ) -> Stored | None:
        stored = self.version(bucket, key, version)
        if stored is None:
            return None
        unwanted += stored.segments
        self.index.execute("DELETE FROM versions WHERE number=?", (stored.number,))
        if stored.latest:
            self.index.execute(
                "UPDATE versions SET latest=1 WHERE number=(SELECT number FROM versions "
                "WHERE bucket=? AND key=? ORDER BY number DESC LIMIT 1)",
                (bucket, key),
            )
        return stored

    def has_any(self, bucket: str) -> bool:
        """Whether a bucket holds a version or a delete marker of anything."""
        return self._first("bucket=? LIMIT 1", bucket) is not None

    def keys(self, bucket: str, prefix: str, after: str, limit: int = -1) -> list[Stored]:
        """Newest versions that are no delete marker, by key, after `after`; at most `limit` of
        them, where that is not negative."""
        return self._rows(
            "bucket=? AND latest AND NOT marker AND key>? AND key>=? AND key<CAST(? AS TEXT)"
            " ORDER BY key LIMIT ?",
            *(bucket, after, prefix, prefix.encode() + LAST, limit),
        )

    def versions(self, bucket: str, prefix: str, after: str, number: int = 0) -> list[Stored]:
        """All versions, by key and the newest first, from those after (`after`, `number`) on.

        number: of the last version of key `after` that was seen; 0 for none left of it.
        """
        return self._rows(
            "bucket=? AND (key>? OR (key=? AND number<?)) AND key>=? AND key<CAST(? AS TEXT)"
            " ORDER BY key, number DESC",
            *(bucket, after, after, number, prefix, prefix.encode() + LAST),
        )

    def _rows(self, sql: str, *values: object) -> list[Stored]:
        with self.lock:
            rows = self.index.execute(f"SELECT {ROW} FROM versions WHERE {sql}", values).fetchall()
        return [_stored(row) for row in rows]

    def begin_upload(self, bucket: str, key: str, fields: dict) -> Stored:
        upload = {"bucket": bucket, "key": key, "fields": fields}
        return self.put(UPLOADS, uuid.uuid4().hex, False, [], "", upload)

    def upload(self, upload: str) -> Stored | None:
        return self.latest(UPLOADS, upload)

    def uploads(self, bucket: str, prefix: str = "") -> list[Stored]:
        """Those of a bucket, by the objects' keys."""
        uploads = [row for row in self.keys(UPLOADS, "", "") if row.fields["bucket"] == bucket]
        uploads.sort(key=lambda upload: (upload.fields["key"], upload.modified))
        return [upload for upload in uploads if upload.fields["key"].startswith(prefix)]

    def put_part(self, upload: str, number: int, segment: Segment, etag: str) -> Stored:
        return self.put(f"{UPLOADS}/{upload}", f"{number:05}", False, [segment], etag, {})

    def parts(self, upload: str) -> list[Stored]:
        """By their numbers."""
        return self.keys(f"{UPLOADS}/{upload}", "", "")

    def end_upload(self, upload: str) -> None:
        """Forget an upload that was given up, and its parts."""
        with self._change() as unwanted:
            unwanted += [segment for part in self.parts(upload) for segment in part.segments]
            self._forget_upload(upload)

    def _forget_upload(self, upload: str) -> None:
        self.index.execute("DELETE FROM versions WHERE bucket=? AND key=?", (UPLOADS, upload))
        self.index.execute("DELETE FROM versions WHERE bucket=?", (f"{UPLOADS}/{upload}",))

    def forget_bucket(self, bucket: str) -> None:
        """The bucket is gone: so are the uploads that nobody finished in it."""
        for upload in self.uploads(bucket):
            self.end_upload(upload.key)


def _now() -> float:
    return int(time.time() * 1000) / 1000


def _stored(row: tuple) -> Stored:
    version, latest, marker, modified, size, etag, segments, fields, key, number = row
    files: list[Segment] = [(name, length) for name, length in json.loads(segments)]
    flags = bool(latest), bool(marker)
    return Stored(version, *flags, modified, size, etag, files, json.loads(fields), key, number)
