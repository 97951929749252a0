"""Archives, manifests and keys that try to leave their place, as a job's own input."""

from __future__ import annotations

import io
import json
import tarfile
import uuid

import pytest
from emulator_harness import request

from local_sagemaker.container import toolkit_patches
from local_sagemaker.core import s3_input
from local_sagemaker.pytest_plugin import BUCKET

SCRIPT = b"print('TRAINED')\n"
OUTSIDE = f"escaped-{uuid.uuid4().hex}"  # what an archive tries to write, and must not


def entry(name: str, raw: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""):
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(raw), kind, link
    return member, raw


def archive(*members, script: str = "train.py") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for member, raw in (*members, entry(script, SCRIPT)):
            tar.addfile(member, io.BytesIO(raw))
    return stream.getvalue()


def begun(endpoint, source: bytes) -> str:
    """Start a job with this source_dir; its name."""
    name = f"archive-{uuid.uuid4().hex[:10]}"
    uri = endpoint.put(f"code/{name}.tar.gz", source)
    parameters = {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": f'"{uri}"'}
    endpoint.client("sagemaker").create_training_job(**request(name, HyperParameters=parameters))
    return name


def test_an_archive_that_climbs_stays_inside_its_directory(endpoint, tmp_path):
    """The toolkit keeps it there and says so, as on AWS; the job trains."""
    target, precious = tmp_path / OUTSIDE, tmp_path / "precious"
    precious.write_text("mine")
    members = [
        entry(f"../../../..{target}", b"x"),
        entry(str(target), b"x"),
        entry("out", kind=tarfile.SYMTYPE, link=str(tmp_path)),
        entry(f"out/{OUTSIDE}", b"x"),
        entry("hard", kind=tarfile.LNKTYPE, link=f"../../..{precious}"),
        entry("device", kind=tarfile.CHRTYPE),
        entry("pipe", kind=tarfile.FIFOTYPE),
    ]
    job = endpoint.wait(begun(endpoint, archive(*members)))
    assert job.status == "Completed", job.description.get("FailureReason")
    output = "\n".join(line for lines in job.log.values() for line in lines)
    assert "TRAINED" in output
    assert "outside the code directory" in output
    assert "special files are not supported" in output
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert precious.read_text() == "mine"


def test_a_source_that_is_none(endpoint):
    broken = {
        b"not an archive": "gzip",
        archive(entry("big", bytes(range(256)) * 4000))[:400]: "end",
        archive(script="other.py"): "train.py",
    }
    names = {begun(endpoint, raw): word for raw, word in broken.items()}
    for name, word in names.items():
        job = endpoint.wait(name)
        assert job.status == "Failed"
        assert word in job.description["FailureReason"]


def test_an_archive_that_unpacks_to_too_much(tmp_path):
    """A header that announces 10 GB is enough: it is refused before a byte is written."""
    extracted, stream = [], io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        member, _ = entry("bomb")
        member.size = 10 << 30
        tar.addfile(member)
    stream.seek(0)
    extract = toolkit_patches.bounded(lambda *arguments: extracted.append(arguments))
    with (
        tarfile.open(fileobj=stream) as tar,
        pytest.raises(
            toolkit_patches.errors.ClientError, match=r"unpacks to more than 4,294,967,296 bytes"
        ),
    ):
        extract(tar, str(tmp_path))
    assert extracted == []
    whole = io.BytesIO(archive(entry("small", b"x")))
    with tarfile.open(fileobj=whole) as tar:
        extract(tar, str(tmp_path))
    assert len(extracted) == 1


FORM = 'is not of the form [{"prefix": "s3://..."}, "key", ...]'
PREFIX = {"prefix": f"s3://{BUCKET}/damaged/"}
LONG = "a" * 300  # a good key, and no file's name
MANIFESTS = [
    ("no JSON", b"part-0,part-1", FORM),
    ("no prefix", b'["part-0"]', FORM),
    ("a key that is a number", json.dumps([PREFIX, 7]).encode(), FORM),
    ("very deep", b"[" * 100_000, FORM),
    ("bytes that are no text", b"\xff\xfe\x00", FORM),
    ("no such object", json.dumps([PREFIX, "nowhere"]).encode(), "Data download failed"),
    ("no bucket", b'[{"prefix": "damaged/"}, "part-0"]', "Data download failed"),
    ("a key that climbs", json.dumps([PREFIX, f"../{OUTSIDE}"]).encode(), "would leave its"),
    ("a zero byte", json.dumps([PREFIX, "a\0b"]).encode(), "no name holds a zero byte"),
    ("a name too long", json.dumps([PREFIX, LONG]).encode(), "File name too long"),
    (
        "a file where a folder is",
        json.dumps([PREFIX, "part-0", "part-0/x"]).encode(),
        "a directory where another object has a file",
    ),
]


def test_a_manifest_that_is_refused(endpoint):
    """The jobs fail before they train, in words; and no instance is left."""
    for key in ("damaged/part-0", "damaged/part-0/x", f"damaged/{LONG}"):
        endpoint.put(key, "x")
    names = {label: f"manifest-{uuid.uuid4().hex[:10]}" for label, _, _ in MANIFESTS}
    for label, raw, _ in MANIFESTS:
        uri = endpoint.put(f"manifests/{names[label]}", raw)
        source = {"S3DataType": "ManifestFile", "S3Uri": uri}
        channel = {"ChannelName": "training", "DataSource": {"S3DataSource": source}}
        body = request(names[label], InputDataConfig=[channel])
        endpoint.client("sagemaker").create_training_job(**body)
    for label, _, words in MANIFESTS:
        job = endpoint.wait(names[label])
        assert job.status == "Failed", label
        reason = job.description["FailureReason"]
        assert reason.startswith("ClientError: ") and words in reason, (label, reason)
        folder = endpoint.state / "jobs" / job.name
        assert [path.name for path in folder.iterdir()] == ["job.json"], label
    assert not list(endpoint.state.rglob(OUTSIDE))


def test_every_name_stays_below_its_folder(tmp_path):
    """Whatever the key: the file is inside, or the key is refused."""
    good = ("a", "/a", "//a//b", "./a", "a/./b", "~/a", "...", "a\\..\\b", " ", "-rf")
    for number, name in enumerate(good):
        folder = tmp_path / str(number)
        path = s3_input.inside(folder, name, name)
        assert path.resolve().is_relative_to(folder.resolve()), name
    for name in ("..", "a/..", "../a", "/../a", "a/../../b", "a\0b"):
        with pytest.raises(s3_input.DataError):
            s3_input.inside(tmp_path / "channel", name, name)
