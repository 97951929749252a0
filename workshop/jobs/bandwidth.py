"""The bandwidth between a job's instances, on this machine.

    estimator = TensorFlow(..., environment={"LOCAL_SAGEMAKER_LINKS": "200mbit"})
    bandwidth.network_performance("ml.c5.xlarge").gbit

Every instance sends at most the rate, and receives at most the rate, at the same time. Processes
of one instance talk over its own loopback, which has no limit. AWS ignores the variable: there the
instance type decides.
"""

from __future__ import annotations

from local_sagemaker import daemon
from local_sagemaker.cluster import probe
from local_sagemaker.cluster.links import BY_TYPE, WIDE, parse
from local_sagemaker.cluster.spec import PROCESSES
from local_sagemaker.jobs.network import Performance, performance


def words(between: str, latency: str | None = None) -> str:
    """The setting of such links as one string. Raises ValueError, with what was expected.

    between: "200mbit" (kbit, mbit or gbit), "wide", or "by-type" (what the job's instance type
    has on AWS, scaled down). latency: one way, such as "1ms", where the kernel can delay.
    """
    if latency is None:
        parse(between)
        return between
    if between in (WIDE, BY_TYPE):
        raise ValueError(f"A latency goes with a rate such as 200mbit, not with '{between}'.")
    parse(f"{between} {latency}")
    return f"{between} {latency}"


def mbit(between: str) -> float:
    """The rate of "200mbit" in Mbit/s; infinity for "wide". Raises ValueError for anything else."""
    found = parse(between)
    if found == BY_TYPE:
        raise ValueError(f"'{between}' is another rate for each type: ask network_performance.")
    return float("inf") if found == WIDE else found.rate / 1e6


def why_unshaped(session) -> str | None:
    """Why this session's links cannot be shaped, a sentence; None if they can."""
    if session.target == "aws":
        return "On AWS each instance has the bandwidth of its type, and nobody limits it."
    found = daemon.running(daemon.state_directory())
    if found and found.isolation == PROCESSES:
        return f"Links stay wide: instances are plain processes here, because {found.why}."
    reason = probe.why_no_shaping()
    return f"Links stay wide: {reason}." if reason else None


def network_performance(instance_type: str) -> Performance:
    """What AWS documents of the network of an `ml.` type: Gbit/s that last, burst, EFA, source.

    Raises ValueError for a type that is not in the table, with those that are.
    """
    return performance(instance_type)
