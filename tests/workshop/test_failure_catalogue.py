"""Each failure shows itself as described; with the mistake mended it does not."""

from __future__ import annotations

import pytest

from workshop import breaking

RANKS = (
    "rank-dies",
    "rank-hangs",
    "mismatched-shapes",
    "forgotten-broadcast",
    "forgotten-set-epoch",
    "lr-not-scaled",
    "ranks-overwrite",
)
JOBS = ("blocked-security-group", "no-s3-endpoint", "requirements-offline")
SOON = [("mismatched-shapes", False), ("forgotten-broadcast", False)]
LINES = {
    "rank-dies": ("torchrun: ", "mpirun: "),
    "rank-hangs": ("in wait_for", "Timed out waiting 10000ms"),
    "mismatched-shapes": ("params[0] in this process with sizes [10, 64]",),
    "forgotten-broadcast": ('"weights_at_end" of rank 0: ',),
    "forgotten-set-epoch": ('"images_in_order" of epoch 1: ',),
    "lr-not-scaled": ('"train_loss" after 4 epochs: 1 rank 0.',),
    "ranks-overwrite": ("save ", "Error"),
    "blocked-security-group": ("Cannot connect to host algo-2", "MaxRuntimeExceeded"),
    "no-s3-endpoint": ("Data download failed:Please ensure that the subnet's route table",),
    "requirements-offline": ("Retrying", "No matching distribution found for humanize==4.9.0"),
}


def check(name: str, mended: bool) -> None:
    shown = breaking.show(name, mended)
    assert not shown.impossible, shown.impossible
    assert shown.as_described, str(shown)
    assert shown.line and shown.mended == mended and shown.seconds > 0
    if not mended:
        assert [one for one in LINES[name] if one not in shown.line] == []


def test_there_are_these():
    assert tuple(breaking.names()) == (*RANKS, *JOBS)
    assert set(breaking.table().index) == set(LINES)


@pytest.mark.parametrize(("name", "mended"), SOON)
def test_ranks(name, mended):
    check(name, mended)


@pytest.mark.parametrize("name", ["no-s3-endpoint", "requirements-offline"])
@pytest.mark.namespaces
def test_jobs(own_endpoint, clean_aws, name):
    check(name, mended=False)


@pytest.mark.soak
@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("name", RANKS)
def test_all_of_ranks(name, mended):
    check(name, mended)


@pytest.mark.soak
@pytest.mark.namespaces
@pytest.mark.parametrize("mended", [False, True])
@pytest.mark.parametrize("name", JOBS)
def test_all_of_jobs(own_endpoint, clean_aws, name, mended):
    check(name, mended)


@pytest.mark.namespaces
def test_a_job_that_broke_leaves_nothing(own_endpoint, session):
    def everything() -> dict:
        ec2 = session.client("ec2")
        return {
            "vpcs": ec2.describe_vpcs()["Vpcs"],
            "endpoints": ec2.describe_vpc_endpoints()["VpcEndpoints"],
            "buckets": [one["Name"] for one in session.client("s3").list_buckets()["Buckets"]],
            "jobs": session.client("sagemaker").list_training_jobs()["TrainingJobSummaries"],
        }

    before = everything()
    check("no-s3-endpoint", mended=False)
    assert everything() == before
