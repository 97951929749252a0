"""Makes an instance's link narrow, with the kernel's own token bucket (tc tbf).

A link has two ends, and each limits one direction: eth0 inside the instance what it sends, the
bridge's port what it receives. So a link is full duplex, and many senders to one receiver share
what that one can take.
"""

from __future__ import annotations

import dataclasses
import subprocess

from local_sagemaker.cluster.links import Links

BURST_SECONDS = 0.0005
LEAST_BURST = 3100  # bytes; two packets of an Ethernet
QUEUE = 4 << 20  # bytes


@dataclasses.dataclass(frozen=True)
class Shaped:
    """narrow: whether the rate holds. notes: what the job's log is to say."""

    narrow: bool
    notes: list[str]


def narrow_ports(ports: list[str], links: Links) -> Shaped:
    """Limit what leaves the bridge's ports: what each instance receives. In job init."""
    notes = []
    if links.latency:
        refused = tc([line for port in ports for line in _slow(port, links)])
        if refused is None:
            return Shaped(True, [f"links: {links} between instances, {links.why}"])
        tc([f"qdisc del dev {port} root" for port in ports])  # those that had it already
        notes.append(
            f"links have no latency of {links.latency * 1e3:g} ms: this kernel refuses netem "
            f"({refused})"
        )
        links = dataclasses.replace(links, latency=0.0)
    refused = tc([_narrow(port, links) for port in ports])
    if refused:
        return Shaped(False, [f"links are wide: this machine cannot shape them ({refused})"])
    return Shaped(True, [f"links: {links} between instances, {links.why}", *notes])


def narrow_eth0(links: Links) -> None:
    """Limit what leaves eth0: what this instance sends. Raises OSError. In its namespace."""
    if refused := tc([_narrow("eth0", links)]):
        raise OSError(f"what an instance sends cannot be limited: {refused}")


def tc(commands: list[str]) -> str | None:
    """Run `tc` commands, one a line. None if all were done, else what was said against it."""
    try:
        done = subprocess.run(
            ["tc", "-batch", "-"], input="\n".join(commands), text=True, capture_output=True
        )
    except OSError as error:
        return f"tc: {error.strerror}"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["tc said no reason"])[0]


def _narrow(device: str, links: Links, parent: str = "root") -> str:
    """The command that limits what leaves `device`."""
    burst = max(LEAST_BURST, int(links.rate / 8 * BURST_SECONDS))
    return f"qdisc add dev {device} {parent} tbf rate {links.rate:.0f} burst {burst} limit {QUEUE}"


def _slow(device: str, links: Links) -> list[str]:
    """The commands that delay what leaves `device`, and limit it then."""
    delay = f"qdisc add dev {device} root handle 1: netem delay {links.latency * 1e6:.0f}us"
    return [f"{delay} limit 100000", _narrow(device, links, "parent 1:1")]
