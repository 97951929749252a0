"""Failures of a job's network: each function runs a job in a VPC of its own, on the emulator.

Each takes its seat, and whether the mistake is fixed first. What is said of them: catalogue.toml.
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

from workshop.account import cleanup
from workshop.account.resources import Account
from workshop.failures.reproduction import CheckResult, first_line, three_lines
from workshop.jobs import vpc
from workshop.jobs.follow import JobResult, watch
from workshop.jobs.local_server import pointed_at, up_for_now
from workshop.jobs.session import MAX_RUN_SECONDS, Session, quiet
from workshop.paths import DEMOS, TRAIN

ONE_EACH = {"mpi": {"enabled": True, "processes_per_host": 1}}
NEEDS_A_PACKAGE = DEMOS / "breaking" / "needs_a_package"
WAITING_SECONDS = 25  # the max_run of a job whose instances wait for each other
# A package of one line, so that the fixed form needs no package index.
PACKAGE = "workshop_greeting"
WHEEL = f"wheels/{PACKAGE}-1.0-py3-none-any.whl"
BESIDE = f"--no-index\n--find-links wheels\n{PACKAGE}==1.0\n"


def on_emulator(
    function: Callable[[Scratch, bool], CheckResult], needs_namespaces: bool
) -> Callable[[bool], CheckResult]:
    """The function in a seat of its own, with the emulator up and AWS variables set for it."""

    def run(fixed: bool) -> CheckResult:
        with up_for_now(report=lambda _: None) as emulator, pointed_at(emulator):
            if needs_namespaces and emulator.isolation == "processes":
                reason = f"instances are plain processes on this machine, because {emulator.why}."
                return CheckResult(False, impossible=reason)
            with contextlib.closing(Scratch()) as scratch:
                return function(scratch, fixed)

    return run


class Scratch(Session):
    """A seat of its own for one failure: its stacks, its job. `close` deletes all.

    Attributes besides a session's: network, as an estimator takes it.
    """

    def __init__(self) -> None:
        super().__init__("local", f"break{uuid.uuid4().hex[:8]}", boto3.Session())
        quiet()
        self.network: dict[str, Any] = vpc.network(self)

    def shut_members_out(self) -> None:
        """Take away the rule by which the security group's members reach each other."""
        ec2, (group,) = self.client("ec2"), self.network["security_group_ids"]
        (description,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
        rules = description["IpPermissions"]
        ec2.revoke_security_group_ingress(GroupId=group, IpPermissions=rules)

    def delete_s3_endpoint(self) -> None:
        """Delete the VPC's S3 endpoint."""
        stack, kind = f"{self.job_prefix}network", "AWS::EC2::VPCEndpoint"
        ids = [part["PhysicalResourceId"] for part in Account(self).stack_parts(stack, kind)]
        self.client("ec2").delete_vpc_endpoints(VpcEndpointIds=ids)

    def run(self, script: Path, channels: dict[str, str] | None = None, **settings) -> JobResult:
        """Run a job in this network to its end. settings: an estimator's arguments."""
        from sagemaker.pytorch import PyTorch

        common = self.job_settings("job", source_dir=script.parent) | {"instance_count": 1}
        estimator = PyTorch(
            entry_point=script.name,
            framework_version="2.2.0",
            py_version="py310",
            instance_type="ml.c5.xlarge",
            **self.network,
            **(common | settings),
        )
        estimator.fit(channels, wait=False)
        return watch(estimator, lambda _: None)

    def close(self) -> None:
        """Delete all of it, the job first; one that still runs is stopped."""
        cleanup.clean(self, lambda _: None)


def good_end(result: JobResult, pattern: str) -> CheckResult:
    """Check a job with the mistake fixed: it must complete and print a matching line."""
    line = first_line(result.lines, pattern)
    return CheckResult(result.status != "Completed" or not line, line)


def blocked_security_group(scratch: Scratch, fixed: bool) -> CheckResult:
    """Two instances in a security group without inbound rules: the first waits for the second."""
    if not fixed:
        scratch.shut_members_out()
    result = scratch.run(
        TRAIN / "train_torch_ddp.py",
        scratch.upload("digits", quiet=True),
        instance_count=2,
        max_run=MAX_RUN_SECONDS if fixed else WAITING_SECONDS,
        distribution=ONE_EACH,
        hyperparameters={"max-steps": 4},
    )
    if fixed:
        return good_end(result, '"event": "epoch"')
    line = first_line(result.lines, "Cannot connect to host")
    ended = result.description["SecondaryStatus"]
    failed = bool(line) and ended == "MaxRuntimeExceeded"
    return CheckResult(failed, f"{line}  and then: {ended}")


def no_s3_endpoint(scratch: Scratch, fixed: bool) -> CheckResult:
    """A VPC without an S3 endpoint: the job's data does not arrive."""
    if not fixed:
        scratch.delete_s3_endpoint()
    channels = scratch.upload("digits", quiet=True)
    result = scratch.run(DEMOS / "look_at_channels.py", channels)
    if fixed:
        return good_end(result, '"event": "channel"')
    reason = result.description.get("FailureReason", "")
    return CheckResult(result.status == "Failed" and "S3 VPC endpoint" in reason, reason)


def requirements_offline(scratch: Scratch, fixed: bool) -> CheckResult:
    """requirements.txt in a VPC without a NAT gateway: pip reaches no index."""
    with tempfile.TemporaryDirectory(prefix="workshop-failures-") as folder:
        source = Path(shutil.copytree(NEEDS_A_PACKAGE, Path(folder) / "source"))
        if fixed:
            (source / WHEEL).parent.mkdir()
            (source / WHEEL).write_bytes(_wheel())
            (source / "requirements.txt").write_text(BESIDE)
        result = scratch.run(source / "train.py")
    if fixed:
        return good_end(result, "^trained$")
    unreached = first_line(result.lines, "Retrying .* after connection broken")
    line = first_line(result.lines, "No matching distribution found")
    reason = result.description.get("FailureReason", "")
    failed = result.status == "Failed" and "InstallRequirementsError" in reason
    return CheckResult(bool(failed and unreached and line), f"{unreached[:160]}  and then: {line}")


def s3_path(scratch: Scratch, fixed: bool) -> CheckResult:
    """A channel at an address at which there is nothing."""
    channels = scratch.upload("digits", quiet=True)
    if not fixed:
        channels["training"] += "-of-last-week"
    try:
        result = scratch.run(DEMOS / "look_at_channels.py", channels)
    except ClientError as error:  # there is no job of which `why` could be asked
        return CheckResult("No S3 objects found" in str(error), str(error)[:200])
    return good_end(result, '"event": "channel"')


def lost_distribution(scratch: Scratch, fixed: bool) -> CheckResult:
    """Two instances, and nothing that makes their processes ranks of one training."""
    result = scratch.run(
        TRAIN / "train_torch_ddp.py",
        scratch.upload("digits", quiet=True),
        instance_count=2,
        hyperparameters={"max-steps": 4},
        distribution=ONE_EACH if fixed else None,
    )
    if fixed:
        return good_end(result, '"world_size": 2')
    line = first_line(result.lines, "KeyError: 'LOCAL_WORLD_SIZE'")
    failed = result.status == "Failed" and bool(line)
    return CheckResult(failed, line, why=three_lines(result.name, scratch))


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


CHECKS = {
    "blocked-security-group": on_emulator(blocked_security_group, needs_namespaces=True),
    "no-s3-endpoint": on_emulator(no_s3_endpoint, needs_namespaces=False),
    "requirements-offline": on_emulator(requirements_offline, needs_namespaces=True),
    "s3-path": on_emulator(s3_path, needs_namespaces=False),
    "lost-distribution": on_emulator(lost_distribution, needs_namespaces=False),
}
