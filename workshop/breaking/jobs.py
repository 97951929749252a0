"""The failures of networks. Each runs a job in a VPC on the local endpoint."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import zipfile

from local_sagemaker.cluster.spec import PROCESSES
from workshop.breaking.network import Place, place
from workshop.breaking.shown import Failure, Seen
from workshop.jobs.local_server import client
from workshop.paths import DATA, SCRIPTS

NEEDS_A_PACKAGE = SCRIPTS / "breaking" / "needs_a_package"
WAITING_SECONDS = 25  # the max_run of a job whose instances wait for each other
ENOUGH_SECONDS = 600  # the max_run of a job that is to complete
# A package of one line, so that the mended form needs no package index.
PACKAGE = "workshop_greeting"
BESIDE = f"--no-index\n--find-links wheels\n{PACKAGE}==1.0\n"


def _reproduce(act, needs_namespaces: bool):
    """What reproduces a failure: `act(mended)`, with the local endpoint up meanwhile."""

    def reproduce(mended: bool) -> Seen:
        from workshop.jobs.local_server import up_for_now

        with up_for_now(say=lambda _: None) as found:
            if needs_namespaces and found.isolation == PROCESSES:
                why = f"instances are plain processes on this machine, because {found.why}."
                return Seen(False, impossible=why)
            return act(mended)

    return reproduce


def _training(made: Place, max_run: int, count: int) -> dict:
    """A job that trains a few steps of PyTorch's DDP, a rank on each instance."""
    import data_prep

    digits = data_prep.digits.prepare(DATA / "digits", quiet=True)
    source = made.source(SCRIPTS, {})
    request = made.request("train_torch_ddp.py", source, count, max_run)
    request["HyperParameters"] |= {
        "max-steps": "4",
        "sagemaker_mpi_enabled": "true",
        "sagemaker_mpi_num_of_processes_per_host": "1",
    }
    address = made.upload(digits, "digits")
    request["InputDataConfig"] = [
        {
            "ChannelName": name,
            "DataSource": {
                "S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": f"{address}/{name}"}
            },
        }
        for name in ("training", "test")
    ]
    return request


def _completed(found: dict, lines: list[str], pattern: str) -> Seen:
    """For a job whose mistake was mended."""
    line = next((one for one in lines if re.search(pattern, one)), "")
    return Seen(found["TrainingJobStatus"] != "Completed" or not line, line)


def blocked_security_group(mended: bool) -> Seen:
    """Two instances in a group that lets nobody in: the first waits for the second."""
    with place(client, let_members_in=mended) as made:
        max_run = ENOUGH_SECONDS if mended else WAITING_SECONDS
        found, lines = made.run(_training(made, max_run, count=2))
    if mended:
        return _completed(found, lines, '"event": "epoch"')
    line = next((one for one in lines if "Cannot connect to host" in one), "")
    ended = found["SecondaryStatus"]
    return Seen(bool(line) and ended == "MaxRuntimeExceeded", f"{line}  and then: {ended}")


def no_s3_endpoint(mended: bool) -> Seen:
    """A VPC without a way to S3: the job's data does not arrive."""
    with place(client, to_s3=mended) as made:
        request = _training(made, ENOUGH_SECONDS, count=1)
        request["HyperParameters"]["sagemaker_program"] = '"look_at_channels.py"'
        for name in [one for one in request["HyperParameters"] if "mpi" in one or "max" in one]:
            del request["HyperParameters"][name]
        found, lines = made.run(request)
    if mended:
        return _completed(found, lines, '"event": "channel"')
    reason = found.get("FailureReason", "")
    return Seen(found["TrainingJobStatus"] == "Failed" and "S3 VPC endpoint" in reason, reason)


def requirements_offline(mended: bool) -> Seen:
    """requirements.txt in a VPC without a NAT gateway: pip reaches no index."""
    more = {"requirements.txt": BESIDE.encode(), f"wheels/{_wheel_name()}": _wheel()}
    with place(client) as made:
        source = made.source(NEEDS_A_PACKAGE, more if mended else {})
        found, lines = made.run(made.request("train.py", source, 1, ENOUGH_SECONDS))
    if mended:
        return _completed(found, lines, "^trained$")
    unreached = [one for one in lines if re.search("Retrying .* after connection broken", one)]
    reason = found.get("FailureReason", "")
    failed = found["TrainingJobStatus"] == "Failed" and "InstallRequirementsError" in reason
    line = next((one for one in lines if "No matching distribution found" in one), "")
    return Seen(
        failed and bool(unreached and line), f"{(unreached or [''])[0][:160]}  and then: {line}"
    )


def _wheel_name() -> str:
    return f"{PACKAGE}-1.0-py3-none-any.whl"


def _wheel() -> bytes:
    """A wheel of a package of one line."""
    about = f"{PACKAGE}-1.0.dist-info"
    files = {
        f"{PACKAGE}.py": 'WORDS = "hello"\n',
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n",
        f"{about}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: workshop\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(text)}\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, text in (files | {f"{about}/RECORD": f"{record}{about}/RECORD,,\n"}).items():
            archive.writestr(name, text)
    return packed.getvalue()


JOBS = (
    Failure(
        "blocked-security-group",
        "a job of 2 instances in a VPC whose security group has no inbound rule, and a max_run of "
        f"{WAITING_SECONDS} s",
        "The job is InProgress and trains nothing: the first instance waits for the second (on "
        "AWS for an hour), until max_run ends the job: MaxRuntimeExceeded. You pay for it.",
        "Add an inbound rule to the group: all traffic, source the group itself (and an outbound "
        "one, which EFA needs). `workshop preflight` looks for it before you pay.",
        "06",
        46,
        _reproduce(blocked_security_group, needs_namespaces=True),
    ),
    Failure(
        "no-s3-endpoint",
        "a job in a VPC whose subnet has neither an S3 endpoint in its route table nor a NAT "
        "gateway",
        "The job fails in Downloading, before your script starts. Its log is empty.",
        "Make a gateway endpoint for S3 (free), and name the subnet's route table in it.",
        "06",
        5,
        _reproduce(no_s3_endpoint, needs_namespaces=False),
    ),
    Failure(
        "requirements-offline",
        "a job in a VPC without a NAT gateway, with a requirements.txt beside its script",
        "pip tries again and again, then says that no version exists; the job fails with "
        "InstallRequirementsError. On AWS the name is found and nobody answers: pip waits 15 s "
        "for each of its 6 tries.",
        "Put the wheels beside the script and `--no-index --find-links wheels` into "
        "requirements.txt; or build an image that has the packages; or pay for a NAT gateway.",
        "06",
        20,
        _reproduce(requirements_offline, needs_namespaces=True),
    ),
)
