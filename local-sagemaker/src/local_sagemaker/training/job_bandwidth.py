"""Which bandwidth a job gets: the one it asks for, else that of the emulator's own setting.

The setting is a file of the state directory with the same words as the variable (see
cluster/bandwidth.py). It is read when a job is created, so it can be changed at any time.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from local_sagemaker.cluster.bandwidth import BY_TYPE, UNLIMITED, Bandwidth, parse
from local_sagemaker.protocol.errors import validation
from local_sagemaker.storage.files import replace
from local_sagemaker.training import instance_types

VARIABLE = "LOCAL_SAGEMAKER_BANDWIDTH"
FILE = "bandwidth"


def read_setting(state: Path) -> str:
    """The words of the emulator's own setting; UNLIMITED where none was made."""
    try:
        return (state / FILE).read_text(encoding="utf-8", errors="replace").strip() or UNLIMITED
    except FileNotFoundError:
        return UNLIMITED


def write_setting(state: Path, between: str, latency: str | None = None) -> None:
    """Keep a setting. Raises ValueError, with what was expected, if it means nothing; OSError.

    between: "200mbit" (kbit, mbit or gbit), "wide", or "by-type" (what the job's instance type
    has on AWS, scaled down). latency: one way, such as "1ms", where the kernel can delay.
    """
    if latency is not None and between in (UNLIMITED, BY_TYPE):
        raise ValueError(f"A latency goes with a rate such as 200mbit, not with '{between}'.")
    words = between if latency is None else f"{between} {latency}"
    parse(words)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(state / FILE, f"{words}\n".encode())


def bandwidth_for_job(request: dict, state: Path) -> Bandwidth | None:
    """The bandwidth of the job that `request` describes; None if it is unlimited.

    Raises AwsError (ValidationException) if what holds for it is malformed, or is by type and
    nothing is known of the type.
    """
    words = request.get("Environment", {}).get(VARIABLE)
    source, reason = f"Environment's {VARIABLE}", "asked for by the job"
    if words is None:
        source = "The emulator's own setting (`local-sagemaker bandwidth`)"
        reason = "set with `local-sagemaker bandwidth`"
    try:
        bandwidth = parse(read_setting(state) if words is None else words)
        resources = request["ResourceConfig"]
        if resources["InstanceCount"] == 1 or bandwidth == UNLIMITED:
            return None
        if isinstance(bandwidth, Bandwidth):
            return dataclasses.replace(bandwidth, reason=reason)
        network = instance_types.network_performance(resources["InstanceType"])
        documented = f"{network.gbit:g} Gbit/s of {network.instance_type}"
        reason = f"{documented}, divided by {instance_types.SCALE}; {reason}"
        return Bandwidth(instance_types.scaled(network), reason=reason)
    except (ValueError, OSError) as error:
        raise validation(f"{source}: {error}") from error
