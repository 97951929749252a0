"""The bandwidth between a job's instances: its words, and how the kernel is made to limit it.

The words stand in `LOCAL_SAGEMAKER_BANDWIDTH` in a request's Environment:

    200mbit         each instance sends at most this much, and receives at most this much
    200mbit 1ms     the same, and a packet is 1 ms on its way
    wide            unlimited: as fast as this machine is

A link has two ends, and the kernel's token bucket (tc tbf) limits one direction at each: at eth0
inside the instance what it sends, at the bridge's port what it receives. So a link is full duplex,
and many senders to one receiver share what that one can take.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re

from local_sagemaker.cluster import linux

UNLIMITED = "wide"
EXPECTED = (
    "a rate (kbit, mbit or gbit) such as 200mbit, a rate and a latency (us, ms or s) such as "
    "'200mbit 1ms', or 'wide'"
)

# Bit/s. Below the minimum a job's own start-up (its script, mpirun's messages) takes minutes; above
# the maximum no machine's CPU could fill the link, so that nothing would be limited.
MIN_RATE, MAX_RATE = 100e3, 100e9
MAX_LATENCY = 1.0  # seconds one way

RATE_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
NUMBER = r"(\d+(?:\.\d+)?)"
WORDS = re.compile(rf"{NUMBER}({'|'.join(RATE_UNITS)})(?: +{NUMBER}({'|'.join(TIME_UNITS)}))?")

# What may pass at once, after a pause: as much as half a millisecond of the rate brings. Less, and
# a timer that comes late on a busy machine costs bandwidth; more, and short messages see no limit.
BURST_SECONDS = 0.0005
PACKET = 1514  # bytes of a full packet on an Ethernet
MIN_BURST = 3100  # bytes: two packets
# Bytes. TCP itself keeps the queue short (the kernel counts, per connection, what has not left
# yet). This is for many connections at once: a full queue drops, and TCP then waits 200 ms.
QUEUE = 4 << 20
MAX_DELAYED = 100_000  # packets that may be on their way at a time; netem drops more


@dataclasses.dataclass(frozen=True)
class Bandwidth:
    """A limited bandwidth.

    rate: bit/s, in each direction at the same time, of every instance. latency: seconds one way.
    """

    rate: float
    latency: float = 0.0

    def __str__(self) -> str:
        """As a person would say it: "200 Mbit/s", "1.25 Mbit/s and 1 ms"."""
        delay = f" and {self.latency * 1e3:g} ms" if self.latency else ""
        for unit, size in (("G", 1e9), ("M", 1e6)):
            if self.rate >= size:
                return f"{self.rate / size:g} {unit}bit/s{delay}"
        return f"{self.rate / 1e3:g} kbit/s{delay}"


def parse(words: str) -> Bandwidth | None:
    """What the words of a setting mean: a Bandwidth; None if it is unlimited.

    Raises ValueError, with what was expected, for anything else.
    """
    if words.strip().lower() == UNLIMITED:
        return None
    match = WORDS.fullmatch(words.strip().lower())
    if match is None:
        raise ValueError(f"'{words}' is not a setting of links: expected {EXPECTED}.")
    rate = float(match[1]) * RATE_UNITS[match[2]]
    latency = float(match[3] or 0) * TIME_UNITS[match[4] or "s"]
    if not MIN_RATE <= rate <= MAX_RATE or latency > MAX_LATENCY:
        raise ValueError(
            f"'{words}' is out of range: a link's rate is from 100kbit to 100gbit, and its latency "
            "one way at most 1s."
        )
    return Bandwidth(rate, latency)


def shape_ports(ports: list[str], bandwidth: Bandwidth) -> tuple[bool, list[str]]:
    """Limit what leaves the bridge's ports: what each instance receives. In job init.

    Returns: whether the rate holds, and lines for the job's log. A kernel without netem delays
    nothing: the rate then holds alone. What a kernel refuses is logged, and never ends a job.
    """
    notes = []
    try:
        try:
            shape(ports, bandwidth)
        except OSError as error:
            if not bandwidth.latency:
                raise
            notes.append(f"links are not delayed: this kernel refuses netem ({error})")
            bandwidth = dataclasses.replace(bandwidth, latency=0.0)
            shape(ports, bandwidth)
    except OSError as error:
        return False, [f"links are wide: this machine cannot shape them ({error})"]
    return True, [f"links: {bandwidth} between instances, asked for by the job", *notes]


def shape_eth0(bandwidth: Bandwidth) -> None:
    """Limit what leaves eth0: what this instance sends. In its namespace. Raises OSError."""
    # Linux hands over up to 64 KB as one packet. One that is larger than the bucket is cut up late,
    # at a cost, and a small message waits behind all of it. So TCP is told to make smaller ones.
    with contextlib.suppress(OSError):
        linux.batch("ip", [f"link set dev eth0 gso_max_segs {burst(bandwidth) // PACKET}"])
    # A packet is delayed once, at the port.
    shape(["eth0"], dataclasses.replace(bandwidth, latency=0.0))


def shape(devices: list[str], bandwidth: Bandwidth) -> None:
    """Shape what leaves all of these devices or, where that raises OSError, none."""
    lines = [(device, line) for device in devices for line in disciplines(bandwidth)]
    try:
        linux.batch("tc", [f"qdisc replace dev {device} {line}" for device, line in lines])
    except OSError:
        for device in devices:
            with contextlib.suppress(OSError):
                linux.batch("tc", [f"qdisc del dev {device} root"])
        raise


def disciplines(bandwidth: Bandwidth) -> list[str]:
    """The queueing disciplines for a device, as tc's words."""
    tbf = f"tbf rate {bandwidth.rate:.0f} burst {burst(bandwidth)} limit {QUEUE}"
    if not bandwidth.latency:
        return [f"root {tbf}"]
    delay = f"netem delay {bandwidth.latency * 1e6:.0f}us limit {MAX_DELAYED}"
    return [f"root handle 1: {delay}", f"parent 1:1 {tbf}"]


def burst(bandwidth: Bandwidth) -> int:
    """Bytes that may pass at once."""
    return max(MIN_BURST, int(bandwidth.rate / 8 * BURST_SECONDS))
