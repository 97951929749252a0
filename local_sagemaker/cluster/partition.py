"""Keeps instances from each other, as a security group does that does not let its members in.

AWS drops such packets without an answer, so whoever connects waits. The same here: an instance
sends what is for another one to a hardware address that nobody has, and the bridge passes nothing
on between their ports. The bridge itself, and through it the endpoint, is reached as before.
"""

from __future__ import annotations

import contextlib

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.loop import note
from local_sagemaker.cluster.spec import ClusterSpec, Host

NOBODY = "02:00:00:00:00:01"  # a locally administered address


def _closed(spec: ClusterSpec) -> bool:
    return bool(spec.closed) and len(spec.hosts) > 1


def close_ports(spec: ClusterSpec) -> None:
    """Isolate the bridge's ports from each other, and say so. In job init."""
    if not _closed(spec):
        return
    with contextlib.suppress(OSError):  # before Linux 4.18; `close_eth0` is enough for IPv4
        linux.ip_batch(
            [f"link set dev {one.bridge_port} type bridge_slave isolated on" for one in spec.hosts]
        )
    note(spec.hosts[0].name, f"instances do not reach each other: {spec.closed}")


def close_eth0(spec: ClusterSpec, host: Host) -> None:
    """Lead what is for other instances to nobody. In the namespace of `host`."""
    if _closed(spec):
        others = [one.address for one in spec.hosts if one.name != host.name]
        entry = f"lladdr {NOBODY} dev eth0 nud permanent"
        linux.ip_batch([f"neigh replace {address} {entry}" for address in others])
