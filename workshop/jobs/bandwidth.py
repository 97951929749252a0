"""The bandwidth between a job's instances, on this machine.

    estimator = TensorFlow(..., environment={"LOCAL_SAGEMAKER_BANDWIDTH": "200mbit"})
    bandwidth.network_performance("ml.c5.xlarge").gbit

Every instance sends at most the rate, and receives at most the rate, at the same time. Processes
of one instance talk over its own loopback, which has no limit. AWS ignores the variable: there the
instance type decides.
"""

from __future__ import annotations

import local_sagemaker
from local_sagemaker import network_performance
from workshop.jobs.session import Session

__all__ = ["mbit", "network_performance", "unlimited_reason"]


def mbit(between: str) -> float:
    """The rate of "200mbit" in Mbit/s; infinity for "wide". Raises ValueError for anything else."""
    rate = local_sagemaker.parse_bandwidth(between)
    if rate == "by-type":
        raise ValueError(f"'{between}' is another rate for each type: ask network_performance.")
    return float("inf") if rate == "wide" else rate.rate / 1e6


def unlimited_reason(session: Session, latency: bool = False) -> str | None:
    """Why bandwidth cannot be limited in this session, as a sentence; None if it can.

    latency: whether links are to be delayed, too ("200mbit 1ms"), which fewer kernels can.
    """
    if session.target == "aws":
        return "On AWS each instance has the bandwidth of its type, and nobody limits it."
    emulator = local_sagemaker.running(local_sagemaker.state_directory())
    if emulator and emulator.isolation == "processes":
        return f"Bandwidth is unlimited: instances are plain processes, because {emulator.why}."
    if reason := local_sagemaker.shaping_unavailable_reason():
        return f"Bandwidth is unlimited: {reason}."
    if latency and local_sagemaker.shaping_unavailable_reason(latency=True):
        return "Links are not delayed: this kernel has no netem."
    return None
