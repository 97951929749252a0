"""Which links a job gets: those it asks for, else those of the emulator's own setting.

The setting is a file of the state directory with the same words as the variable (see
cluster/bandwidth.py). It is read when a job is created, so it can be changed at any time.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from local_sagemaker.cluster.bandwidth import BY_TYPE, WIDE, Links, parse
from local_sagemaker.protocol.errors import validation
from local_sagemaker.storage.files import replace
from local_sagemaker.training import instance_network

VARIABLE = "LOCAL_SAGEMAKER_LINKS"
FILE = "links"


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


def setting(state: Path) -> str:
    """The words of the emulator's own setting; WIDE where none was made."""
    try:
        return (state / FILE).read_text(encoding="utf-8", errors="replace").strip() or WIDE
    except FileNotFoundError:
        return WIDE


def set_to(state: Path, words: str) -> None:
    """Keep `words` as the setting. Raises ValueError if they mean nothing, OSError."""
    parse(words)
    state.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace(state / FILE, f"{words}\n".encode())


def for_job(request: dict, state: Path) -> Links | None:
    """The links of the job that `request` describes; None for wide ones.

    Raises AwsError (ValidationException) if what holds for it is malformed, or is by type and
    nothing is known of the type.
    """
    asked = request.get("Environment", {}).get(VARIABLE)
    if asked is not None:
        where, why = f"Environment's {VARIABLE}", "asked for by the job"
    else:
        where, why = (
            "The emulator's own setting (`local-sagemaker links`)",
            "set with `local-sagemaker links`",
        )
    try:
        found = parse(setting(state) if asked is None else asked)
        resources = request["ResourceConfig"]
        if found == WIDE or resources["InstanceCount"] == 1:
            return None
        if found == BY_TYPE:
            found, why = _by_type(resources["InstanceType"], why)
    except (ValueError, OSError) as error:
        raise validation(f"{where}: {error}") from error
    return dataclasses.replace(found, why=why)


def _by_type(instance_type: str, why: str) -> tuple[Links, str]:
    known = instance_network.performance(instance_type)
    documented = f"{known.gbit:g} Gbit/s of {instance_type}, divided by {instance_network.SCALE}"
    return Links(instance_network.scaled(known)), f"{documented}; {why}"
