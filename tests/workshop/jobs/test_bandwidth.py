"""workshop.jobs.bandwidth: what is known of links, and why they cannot be limited."""

from types import SimpleNamespace

import boto3
import pytest
from moto.utilities.utils import load_resource

from local_sagemaker.cluster import linux, probe
from workshop.jobs import bandwidth


def test_a_machine_without_tc_is_told_in_one_sentence(tmp_path, monkeypatch):
    """What the lessons print before they show recorded results."""
    monkeypatch.setenv("LOCAL_SAGEMAKER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(linux, "SYSTEM_FOLDERS", ())
    monkeypatch.setattr(probe.sys, "platform", "linux")
    reason = bandwidth.unlimited_reason(SimpleNamespace(target="local"))
    assert (
        reason
        == "Bandwidth is unlimited: the command `tc` is missing: install the package iproute2."
    )


def test_network_performance():
    known = bandwidth.network_performance("ml.c5.xlarge")
    assert (known.gbit, known.burst_gbit, known.efa) == (1.25, 10.0, False)
    assert known.source.startswith("https://docs.aws.amazon.com/")
    assert bandwidth.network_performance("ml.p5.48xlarge").gbit == 3200
    with pytest.raises(ValueError, match=r"'c5\.xlarge' is known here.*ml\.c5\.xlarge"):
        bandwidth.network_performance("c5.xlarge")


def test_the_table_says_what_ec2_says():
    """moto carries EC2's own answers for every type that is still to be had."""
    answers = load_resource("ec2/resources/instance_types.json")
    model = boto3.client("sagemaker", region_name="us-east-1").meta.service_model
    assert set(bandwidth.network_table()) <= set(model.shape_for("TrainingInstanceType").enum)
    for name, known in bandwidth.network_table().items():
        info = answers.get(name.removeprefix("ml."))
        if info is None:
            assert "karpenter" in known.source
            continue
        cards = info["NetworkInfo"]["NetworkCards"]
        peak = sum(card["PeakBandwidthInGbps"] for card in cards)
        assert known.gbit == sum(card["BaselineBandwidthInGbps"] for card in cards), name
        assert known.burst_gbit == (peak if peak > known.gbit else None), name
        assert known.efa == info["NetworkInfo"]["EfaSupported"], name
