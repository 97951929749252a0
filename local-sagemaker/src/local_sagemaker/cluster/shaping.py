"""Makes an instance's link narrow, with the kernel's own token bucket (tc tbf).

A link has two ends, and each limits one direction: eth0 inside the instance what it sends, the
bridge's port what it receives. So a link is full duplex, and many senders to one receiver share
what that one can take.
"""

from __future__ import annotations

import contextlib
import dataclasses
import subprocess

from local_sagemaker.cluster import linux
from local_sagemaker.cluster.bandwidth import Links

# What may pass at once, after a pause: as much as half a millisecond of the rate brings. Less, and
# a timer that comes late on a busy machine costs bandwidth; more, and short messages see no limit.
BURST_SECONDS = 0.0005
PACKET = 1514  # bytes of a full packet on an Ethernet
LEAST_BURST = 3100  # bytes: two packets
# Bytes. TCP itself keeps the queue short (the kernel counts, per connection, what has not left
# yet). This is for many connections at once: a full queue drops, and TCP then waits 200 ms.
QUEUE = 4 << 20
DELAYED = 100_000  # packets that may be on their way at a time; netem drops more


@dataclasses.dataclass(frozen=True)
class Shaped:
    """narrow: whether the rate holds. notes: what the job's log is to say."""

    narrow: bool
    notes: list[str]


def narrow_ports(ports: list[str], links: Links) -> Shaped:
    """Limit what leaves the bridge's ports: what each instance receives. In job init.

    A kernel without netem delays nothing: the rate then holds alone. What a kernel refuses is
    said, and never ends a job.
    """
    notes = []
    why = _shape(ports, links)
    if why and links.latency:
        notes.append(f"links are not delayed: this kernel refuses netem ({why})")
        links = dataclasses.replace(links, latency=0.0)
        why = _shape(ports, links)
    if why:
        return Shaped(False, [f"links are wide: this machine cannot shape them ({why})"])
    return Shaped(True, [f"links: {links} between instances, {links.why}", *notes])


def _shape(ports: list[str], links: Links) -> str | None:
    """Shape all of them or none. None if that was done, else why not."""
    for port in ports:
        if why := refused(port, links):
            widen(ports)
            return why
    return None


def narrow_eth0(links: Links) -> None:
    """Limit what leaves eth0: what this instance sends. In its namespace. Raises OSError."""
    # Linux hands over up to 64 KB as one packet. One that is larger than the bucket is cut up late,
    # at a cost, and a small message waits behind all of it. So TCP is told to make smaller ones.
    with contextlib.suppress(OSError):
        linux.ip_batch([f"link set dev eth0 gso_max_segs {burst(links) // PACKET}"])
    rate_alone = dataclasses.replace(links, latency=0.0)  # a packet is delayed once, at the port
    if why := refused("eth0", rate_alone):
        raise OSError(f"what an instance sends cannot be limited: {why}")


def refused(device: str, links: Links) -> str | None:
    """Shape what leaves `device`. None if that was done, else why not, and nothing is left."""
    commands = [f"qdisc replace dev {device} {line}" for line in disciplines(links)]
    why = _tc(commands)
    if why:
        widen([device])
    return why


def widen(devices: list[str]) -> None:
    """Take away what shapes these devices; one that nothing shapes stays as it is."""
    for device in devices:
        _tc([f"qdisc del dev {device} root"])


def disciplines(links: Links) -> list[str]:
    """The queueing disciplines for a device, as tc's words."""
    tbf = f"tbf rate {links.rate:.0f} burst {burst(links)} limit {QUEUE}"
    if not links.latency:
        return [f"root {tbf}"]
    delay = f"netem delay {links.latency * 1e6:.0f}us limit {DELAYED}"
    return [f"root handle 1: {delay}", f"parent 1:1 {tbf}"]


def burst(links: Links) -> int:
    """Bytes that may pass at once."""
    return max(LEAST_BURST, int(links.rate / 8 * BURST_SECONDS))


def _tc(commands: list[str]) -> str | None:
    """Run `tc` commands, one a line. None if all succeeded, else the error."""
    tc = linux.system_command("tc")
    if tc is None:
        return linux.missing("tc")
    try:
        done = subprocess.run(
            [tc, "-batch", "-"], input="\n".join(commands), text=True, capture_output=True
        )
    except OSError as error:
        return f"tc: {error.strerror}"
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["tc gave no reason"])[0]
