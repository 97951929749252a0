"""Archives that are damaged, or that try to leave their place, as a job's source_dir."""

import io
import tarfile
import uuid

from emulator_harness import completed, request

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


def begun(emulator, source: bytes) -> str:
    """Start a job with this source_dir; its name."""
    name = f"archive-{uuid.uuid4().hex[:10]}"
    uri = emulator.put(f"code/{name}.tar.gz", source)
    parameters = {"sagemaker_program": '"train.py"', "sagemaker_submit_directory": f'"{uri}"'}
    emulator.client("sagemaker").create_training_job(**request(name, HyperParameters=parameters))
    return name


def test_an_archive_that_climbs_stays_inside_its_directory(emulator, tmp_path):
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
    job = completed(emulator.wait(begun(emulator, archive(*members))))
    output = "\n".join(line for lines in job.log.values() for line in lines)
    assert "TRAINED" in output
    assert "outside the code directory" in output
    assert "special files are not supported" in output
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]
    assert precious.read_text() == "mine"


def test_a_source_that_is_none(emulator):
    broken = {
        b"not an archive": "gzip",
        archive(entry("big", bytes(range(256)) * 4000))[:400]: "end",
        archive(script="other.py"): "train.py",
    }
    names = {begun(emulator, raw): word for raw, word in broken.items()}
    for name, word in names.items():
        job = emulator.wait(name)
        assert job.status == "Failed"
        assert word in job.description["FailureReason"]
