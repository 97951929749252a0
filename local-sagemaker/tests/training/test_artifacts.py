"""/opt/ml/model, /opt/ml/output/data and /opt/ml/checkpoints -> S3, and back."""

import io
import os
import shutil
import tarfile
import threading
import uuid
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from emulator_harness import command_request, ended, request, until_status

from local_sagemaker.core.s3_input import DataError
from local_sagemaker.protocol.errors import AwsError
from local_sagemaker.pytest_plugin import BUCKET
from local_sagemaker.training import artifacts

REGION = "us-east-1"


class Job:
    """A job's request and the /opt/ml of its hosts, without processes."""

    def __init__(self, emulator, directory: Path) -> None:
        self.emulator, self.name = emulator, f"job-{uuid.uuid4().hex[:8]}"
        self.aws = emulator.aws
        self.hosts = {name: directory / name / "ml" for name in ("algo-1", "algo-2")}
        for path in self.hosts.values():
            for folder in ("model", "output/data", "checkpoints"):
                (path / folder).mkdir(parents=True)
        checkpoints = {"S3Uri": f"s3://{BUCKET}/{self.name}/checkpoints"}
        self.request = request(self.name, CheckpointConfig=checkpoints)
        self.left = artifacts.LeftBehind(self.hosts, threading.Event())

    def write(self, host: str, path: str, text: str) -> Path:
        target = self.hosts[host] / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def upload(self) -> str | None:
        return artifacts.upload(self.aws, self.request, REGION, self.left)

    def archive(self, name: str) -> tarfile.TarFile:
        raw = self.emulator.get(f"s3://{BUCKET}/out/{self.name}/output/{name}.tar.gz")
        return tarfile.open(fileobj=io.BytesIO(raw))

    def sync(self) -> artifacts.Sync:
        return artifacts.syncs(self.aws, self.request, REGION, self.left)[0]

    def checkpoints(self) -> dict[str, str]:
        return self.objects(f"{self.name}/checkpoints/")

    def objects(self, base: str) -> dict[str, str]:
        result = self.aws.objects(f"s3://{BUCKET}/{base}", REGION)
        return {
            key[len(base) :]: self.emulator.get(f"s3://{BUCKET}/{key}").decode("latin-1")
            for _, key, _ in result
        }


@pytest.fixture
def job(emulator, tmp_path):
    return Job(emulator, tmp_path)


def test_model_and_output_of_all_hosts(job, tmp_path):
    """Where two wrote the same name, the lowest-numbered instance's is taken."""
    job.write("algo-1", "model/1/saved_model.pb", "graph")
    job.write("algo-2", "model/1/saved_model.pb", "another graph")
    job.write("algo-2", "model/1/variables/variables.index", "weights")
    job.write("algo-2", "output/data/losses.csv", "0.5")
    assert job.upload() == f"s3://{BUCKET}/out/{job.name}/output/model.tar.gz"
    with job.archive("model") as tar:
        assert tar.getnames() == ["1/saved_model.pb", "1/variables/variables.index"]
        assert tar.extractfile("1/saved_model.pb").read() == b"graph"
    assert job.archive("output").getnames() == ["losses.csv"]
    assert not list(tmp_path.glob("*.tar.gz"))


def test_without_a_model_there_is_no_archive_of_it(job):
    job.write("algo-1", "output/data/losses.csv", "0.5")
    assert job.upload() is None
    assert job.archive("output").getnames() == ["losses.csv"]
    with pytest.raises(ClientError, match="NoSuchKey"):
        job.archive("model")


def test_a_link_stays_a_link(job):
    """Also one that leads out of the model: its target is not the job's to give away."""
    job.write("algo-1", "model/step-3.bin", "weights")
    model = job.hosts["algo-1"] / "model"
    targets = {
        "latest.bin": "step-3.bin",
        "outside": "/etc/passwd",
        "folder": "/etc",
        "x": "nowhere",
    }
    for name, target in targets.items():
        os.symlink(target, model / name)
    os.mkfifo(model / "pipe")
    job.upload()
    with job.archive("model") as tar:
        assert {item.name: item.linkname for item in tar if item.issym()} == targets
        assert set(tar.getnames()) == {*targets, "step-3.bin"}


@pytest.mark.parametrize("place", ["checkpoints", "model", "output/data"])
@pytest.mark.parametrize("whole", [False, True])
def test_no_link_leads_to_what_is_not_the_jobs(job, tmp_path, place, whole):
    """A file that is a link, and a folder of /opt/ml that is one."""
    sync = job.sync()
    job.request["OutputDataConfig"]["CompressionType"] = "NONE"
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    job.write("algo-1", "model/own.txt", "own")
    folder = job.hosts["algo-1"] / place
    if whole:
        shutil.rmtree(folder)
        os.symlink(outside, folder)
    else:
        os.symlink(outside / "secret.txt", folder / "x")
        os.symlink(outside, folder / "y")
        os.symlink("../" * 40 + str(outside / "secret.txt"), folder / "z")
    sync.sync(final=True)
    job.upload()
    assert "secret" not in str(job.checkpoints()) + str(job.objects(f"out/{job.name}"))
    if place == "output/data" and not whole:
        with job.archive("output") as tar:
            assert {item.type for item in tar} == {tarfile.SYMTYPE}
    else:
        assert place in job.left.message() and "secret" not in job.left.message()


def test_a_link_inside_opt_ml_is_what_it_leads_to(job):
    sync = job.sync()
    job.write("algo-1", "checkpoints/step-3.bin", "3")
    job.write("algo-1", "model/best.bin", "best")
    checkpoints = job.hosts["algo-1"] / "checkpoints"
    os.symlink("step-3.bin", checkpoints / "last.bin")
    os.symlink("/opt/ml/checkpoints/step-3.bin", checkpoints / "absolute.bin")
    os.symlink("../model/best.bin", checkpoints / "best.bin")
    sync.sync(final=True)
    expected = {"step-3.bin": "3", "last.bin": "3", "absolute.bin": "3", "best.bin": "best"}
    assert job.checkpoints() == expected and job.left.message() == ""


def test_a_name_that_no_key_can_be_keeps_nothing_else_back(job):
    sync = job.sync()
    for place in ("checkpoints", "model"):
        job.write("algo-1", f"{place}/good.bin", "good")
        job.write("algo-1", os.fsdecode(f"{place}/bad-".encode() + b"\xff"), "bad")
    sync.sync(final=True)
    assert job.checkpoints() == {"good.bin": "good"}
    assert "/opt/ml/checkpoints/bad-\\xff" in job.left.message()
    job.upload()
    assert "good.bin" in job.archive("model").getnames()


def test_copying_can_be_given_up(job):
    job.write("algo-1", "model/big.bin", "")
    os.truncate(job.hosts["algo-1"] / "model/big.bin", 1 << 40)
    threading.Timer(0.5, job.left.stop.set).start()
    with pytest.raises(artifacts.Abandoned):
        job.upload()


def test_a_checkpoint_is_sent_once_it_has_settled_and_again_when_it_has_changed(job, monkeypatch):
    sync, sent = job.sync(), []
    client = job.aws.client("s3", REGION)
    upload = client.upload_fileobj
    monkeypatch.setattr(client, "upload_fileobj", lambda *args: (sent.append(args), upload(*args)))
    path = job.write("algo-1", "checkpoints/deep/step.bin", "half")
    sync.sync()
    path.write_text("whole")
    sync.sync()
    assert job.checkpoints() == {}  # it has changed meanwhile
    for _ in range(3):
        sync.sync()
    assert len(sent) == 1 and job.checkpoints() == {"deep/step.bin": "whole"}
    path.write_text("anew")
    sync.sync()
    sync.sync()
    assert len(sent) == 2 and job.checkpoints() == {"deep/step.bin": "anew"}


def test_checkpoints_of_an_earlier_job_are_on_every_host_and_inside_their_directory(job):
    name = f"absolute-{uuid.uuid4().hex}.bin"
    job.emulator.put(f"{job.name}/checkpoints//{name}", "x")
    artifacts.fetch_checkpoints(job.aws, job.request, REGION, job.hosts)
    assert all((path / "checkpoints" / name).exists() for path in job.hosts.values())
    assert not Path("/", name).exists()
    job.emulator.put(f"{job.name}/checkpoints/../escaped", "x")
    with pytest.raises(DataError, match="would leave its directory"):
        artifacts.fetch_checkpoints(job.aws, job.request, REGION, job.hosts)


def test_the_last_checkpoints_are_sent_at_once_and_what_was_fetched_is_not(job):
    """algo-2's old copy must not replace what algo-1 has written anew under the same name."""
    job.emulator.put(f"{job.name}/checkpoints/step.bin", "damaged")
    artifacts.fetch_checkpoints(job.aws, job.request, REGION, job.hosts)
    sync = job.sync()
    job.write("algo-1", "checkpoints/step.bin", "made again")
    job.write("algo-2", "checkpoints/b.bin", "2")
    sync.sync(final=True)
    assert job.checkpoints() == {"step.bin": "made again", "b.bin": "2"}


def test_checkpoints_in_another_place_are_refused(job):
    for right in ("/opt/ml/checkpoints", "/opt/ml/checkpoints/"):
        artifacts.check({"CheckpointConfig": {"LocalPath": right}})
    artifacts.check(job.request)
    artifacts.check({})
    with pytest.raises(AwsError, match=r"LocalPath is '/tmp/kept'; .* write there"):
        artifacts.check({"CheckpointConfig": {"LocalPath": "/tmp/kept"}})


@pytest.mark.namespaces
def test_a_job_that_is_told_to_stop_while_it_uploads_stops_at_once(emulator, api):
    name, command = "uploads-long", "truncate -s 1000G /opt/ml/model/big"
    api.create_training_job(**command_request(name, ["/bin/sh", "-c", command]))
    until_status(emulator, name, "Uploading")
    api.stop_training_job(TrainingJobName=name)
    assert emulator.wait(name, seconds=20).status == "Stopped"


FAILS_LATE = "touch /opt/ml/model/half.bin; echo after the first epoch > /opt/ml/output/failure; "


@pytest.mark.namespaces
@pytest.mark.parametrize(
    ("ends", "reason"),
    [("exit 1", "AlgorithmError: after the first epoch"), ("exit 0", "Artifact upload failed")],
)
def test_where_nothing_can_be_uploaded_the_scripts_own_failure_is_the_reason(
    emulator, ends, reason
):
    name = f"nowhere-{ends.replace(' ', '-')}"
    to = {"OutputDataConfig": {"S3OutputPath": "s3://no-such-bucket-here/x"}}
    job = ended(emulator, command_request(name, ["/bin/sh", "-c", FAILS_LATE + ends], **to))
    assert job.status == "Failed" and reason in job.description["FailureReason"]
