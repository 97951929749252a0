"""Failures of a job's network: each function runs a job in a VPC of its own, on the emulator.

Each takes whether the mistake is fixed first. JOBS, at the end, is the table.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from workshop.failures.reproduction import CheckResult, Failure, first_line
from workshop.jobs import vpc
from workshop.jobs.follow import JobResult, watch
from workshop.jobs.local_server import pointed_at, up_for_now
from workshop.jobs.session import Session
from workshop.paths import DATA, DEMOS, TRAIN

NEEDS_A_PACKAGE = DEMOS / "breaking" / "needs_a_package"
WAITING_SECONDS = 25  # the max_run of a job whose instances wait for each other
ENOUGH_SECONDS = 600  # the max_run of a job that is to complete
ROLE = "arn:aws:iam::" + "0" * 12 + ":role/workshop-break"
# The emulator pulls no image: the name says only which framework's variables to set.
IMAGE = "registry.invalid/pytorch-training:2.2.0-cpu-py310"
# A package of one line, so that the fixed form needs no package index.
PACKAGE = "workshop_greeting"
WHEEL = f"wheels/{PACKAGE}-1.0-py3-none-any.whl"
BESIDE = f"--no-index\n--find-links wheels\n{PACKAGE}==1.0\n"


def on_emulator(
    function: Callable[[bool], CheckResult], needs_namespaces: bool
) -> Callable[[bool], CheckResult]:
    """The function, with the emulator up and this process's AWS variables set for it."""

    def run(fixed: bool) -> CheckResult:
        with up_for_now(report=lambda _: None) as emulator, pointed_at(emulator):
            if needs_namespaces and emulator.isolation == "processes":
                reason = f"instances are plain processes on this machine, because {emulator.why}."
                return CheckResult(False, impossible=reason)
            return function(fixed)

    return run


class Scratch(Session):
    """A seat of its own for one failure: its network, its bucket, its jobs. `close` deletes all.

    Attributes besides a session's: name (of the bucket and the job), subnets, security_group_ids.
    """

    def __init__(self) -> None:
        super().__init__("local", f"break-{uuid.uuid4().hex[:8]}", boto3.Session())
        self.name = f"workshop-{self.seat}"
        self.client("s3").create_bucket(Bucket=self.name)
        network = vpc.network(self)
        self.subnets, self.security_group_ids = network["subnets"], network["security_group_ids"]

    def shut_members_out(self) -> None:
        """Take away the rule by which the security group's members reach each other."""
        ec2, (group,) = self.client("ec2"), self.security_group_ids
        (description,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
        rules = description["IpPermissions"]
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=rules)

    def delete_s3_endpoint(self) -> None:
        """Delete the VPC's way to S3."""
        ec2, network = self.client("ec2"), self._vpc_id()
        for endpoint in ec2.describe_vpc_endpoints()["VpcEndpoints"]:
            # moto has no filter by VPC; one that was deleted is listed for a while
            if endpoint["VpcId"] == network and endpoint["State"] != "deleted":
                ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint["VpcEndpointId"]])

    def request(
        self,
        program: str,
        folder: Path,
        *,
        count: int = 1,
        max_run: int = ENOUGH_SECONDS,
        extra: dict[str, bytes] | None = None,
        mpi: bool = False,
        **hyperparameters: str,
    ) -> dict:
        """A CreateTrainingJob request for a script in this network.

        program: in `folder`, which is packed as the SDK does it, with the files `extra` (name ->
        content) in it. max_run: seconds. mpi: one rank on each instance.
        """
        settings = {
            "sagemaker_program": f'"{program}"',
            "sagemaker_submit_directory": f'"{self._packed(folder, extra or {})}"',
        }
        if mpi:
            settings["sagemaker_mpi_enabled"] = "true"
            settings["sagemaker_mpi_num_of_processes_per_host"] = "1"
        return {
            "TrainingJobName": self.name,
            "RoleArn": ROLE,
            "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
            "OutputDataConfig": {"S3OutputPath": f"s3://{self.name}/out"},
            "ResourceConfig": {
                "InstanceCount": count,
                "InstanceType": "ml.c5.xlarge",
                "VolumeSizeInGB": 1,
            },
            "StoppingCondition": {"MaxRuntimeInSeconds": max_run},
            "VpcConfig": {"Subnets": self.subnets, "SecurityGroupIds": self.security_group_ids},
            "HyperParameters": settings | hyperparameters,
        }

    def with_digits(self, request: dict) -> dict:
        """The request with the two channels of the digits."""
        import data_prep

        digits, address = DATA / "digits", f"s3://{self.name}/digits"
        data_prep.digits.prepare(digits, quiet=True)
        data_prep.upload(digits, address, client=self.client("s3"), quiet=True)
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

    def run(self, request: dict) -> JobResult:
        """Run a job to its end."""
        self.client("sagemaker").create_training_job(**request)
        return watch(self.name, lambda _: None, self)

    def close(self) -> None:
        """Delete all of it, the job first; one that still runs is stopped."""
        sagemaker, ec2 = map(self.client, ("sagemaker", "ec2"))
        with contextlib.suppress(ClientError):  # it has ended, or was never started
            sagemaker.stop_training_job(TrainingJobName=self.name)
        with contextlib.suppress(ClientError):  # it was never started
            watch(self.name, lambda _: None, self)
            sagemaker.delete_training_job(TrainingJobName=self.name)
        bucket = self.boto_session.resource("s3").Bucket(self.name)
        bucket.objects.all().delete()
        bucket.delete()
        self.delete_s3_endpoint()
        network = self._vpc_id()
        for group in self.security_group_ids:
            ec2.delete_security_group(GroupId=group)
        for subnet in self.subnets:
            ec2.delete_subnet(SubnetId=subnet)
        ec2.delete_vpc(VpcId=network)

    def _vpc_id(self) -> str:
        (subnet,) = self.client("ec2").describe_subnets(SubnetIds=self.subnets)["Subnets"]
        return subnet["VpcId"]

    def _packed(self, folder: Path, extra: dict[str, bytes]) -> str:
        """A folder of scripts as source.tar.gz; its S3 address."""
        with tempfile.TemporaryDirectory(prefix="workshop-failures-") as temporary:
            copy = Path(temporary) / "source"
            shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("__pycache__"))
            for name, content in extra.items():
                (copy / name).parent.mkdir(exist_ok=True)
                (copy / name).write_bytes(content)
            archive = shutil.make_archive(str(copy), "gztar", copy)
            self.client("s3").upload_file(archive, self.name, "source.tar.gz")
        return f"s3://{self.name}/source.tar.gz"


def good_end(result: JobResult, pattern: str) -> CheckResult:
    """For a job with the mistake fixed: it must complete and print a line like this."""
    line = first_line(result.lines, pattern)
    return CheckResult(result.status != "Completed" or not line, line)


def blocked_security_group(fixed: bool) -> CheckResult:
    """Two instances in a group that lets nobody in: the first waits for the second."""
    max_run = ENOUGH_SECONDS if fixed else WAITING_SECONDS
    with contextlib.closing(Scratch()) as made:
        if not fixed:
            made.shut_members_out()
        options: dict[str, Any] = {"count": 2, "max_run": max_run, "mpi": True, "max-steps": "4"}
        request = made.request("train_torch_ddp.py", TRAIN, **options)
        result = made.run(made.with_digits(request))
    if fixed:
        return good_end(result, '"event": "epoch"')
    line, ended = (
        first_line(result.lines, "Cannot connect to host"),
        result.description["SecondaryStatus"],
    )
    failed = bool(line) and ended == "MaxRuntimeExceeded"
    return CheckResult(failed, f"{line}  and then: {ended}")


def no_s3_endpoint(fixed: bool) -> CheckResult:
    """A VPC without a way to S3: the job's data does not arrive."""
    with contextlib.closing(Scratch()) as made:
        if not fixed:
            made.delete_s3_endpoint()
        result = made.run(made.with_digits(made.request("look_at_channels.py", DEMOS)))
    if fixed:
        return good_end(result, '"event": "channel"')
    reason = result.description.get("FailureReason", "")
    return CheckResult(result.status == "Failed" and "S3 VPC endpoint" in reason, reason)


def requirements_offline(fixed: bool) -> CheckResult:
    """requirements.txt in a VPC without a NAT gateway: pip reaches no index."""
    wheel = {"requirements.txt": BESIDE.encode(), WHEEL: _wheel()}
    with contextlib.closing(Scratch()) as made:
        request = made.request("train.py", NEEDS_A_PACKAGE, extra=wheel if fixed else {})
        result = made.run(request)
    if fixed:
        return good_end(result, "^trained$")
    unreached = first_line(result.lines, "Retrying .* after connection broken")
    line = first_line(result.lines, "No matching distribution found")
    reason = result.description.get("FailureReason", "")
    failed = result.status == "Failed" and "InstallRequirementsError" in reason
    return CheckResult(bool(failed and unreached and line), f"{unreached[:160]}  and then: {line}")


def _wheel() -> bytes:
    """A wheel of a package of one line."""
    about = f"{PACKAGE}-1.0.dist-info"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{PACKAGE}.py", 'GREETING = "hello"\n')
        archive.writestr(
            f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{about}/RECORD", "")  # pip writes its own
    return packed.getvalue()


JOBS = (
    Failure(
        "blocked-security-group",
        "a job of 2 instances in a VPC whose security group has no inbound rule, and a max_run of "
        f"{WAITING_SECONDS} s",
        "The job is InProgress and trains nothing: the first instance waits for the second, on "
        "AWS up to an hour. If max_run is shorter, it ends the job before: MaxRuntimeExceeded. "
        "You pay for the wait.",
        "Add an inbound rule to the group: all traffic, source the group itself (and an outbound "
        "one, which EFA needs). `workshop preflight` looks for it before you pay.",
        "06",
        46,
        on_emulator(blocked_security_group, needs_namespaces=True),
    ),
    Failure(
        "no-s3-endpoint",
        "a job in a VPC whose subnet has neither an S3 endpoint in its route table nor a NAT "
        "gateway",
        "The job fails in Downloading, before your script starts. Its log is empty.",
        "Make a gateway endpoint for S3 (free), and name the subnet's route table in it.",
        "06",
        5,
        on_emulator(no_s3_endpoint, needs_namespaces=False),
    ),
    Failure(
        "requirements-offline",
        "a job in a VPC without a NAT gateway, with a requirements.txt beside its script",
        "pip can't reach the package index. It tries again and again, then says that no version "
        "exists, and the job fails with InstallRequirementsError. On AWS the index's host name "
        "resolves, but no connection comes about: pip waits 15 s for each of its 6 tries.",
        "Put the wheels beside the script and `--no-index --find-links wheels` into "
        "requirements.txt; or build an image that has the packages; or pay for a NAT gateway.",
        "06",
        20,
        on_emulator(requirements_offline, needs_namespaces=True),
    ),
)
