"""A command whose processes talk over a link that delays each packet, without root.

    mpirun(2, "train.py", latency=0.001)          # what uses it
    unshare --user --map-root-user --net python -m workshop.launch.delayed_link 0.001 COMMAND...

In a network namespace of its own, packets to ADDRESS go through a TUN device instead of loopback;
this process holds each for the latency and hands it back. It needs no netem in the kernel. What it
adds itself, tens of microseconds a packet, comes on top.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from queue import SimpleQueue

DEVICE, ADDRESS = "delayed", "10.99.0.1"
NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # of linux/if_tun.h
MTU = 65_000
# Locally made packets to ADDRESS leave by the device; those that come in by it are for here.
RULES = (
    f"addr add {ADDRESS}/24 dev {DEVICE}",
    f"link set {DEVICE} mtu {MTU} up",
    "link set lo up",
    "rule add pref 100 lookup local",
    "rule del pref 0",
    f"rule add pref 50 to {ADDRESS} iif lo lookup 200",
    f"route add default dev {DEVICE} table 200",
)
# Open MPI: TCP over that device alone. In the namespace everyone is root.
OPEN_MPI = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": DEVICE,
} | {
    f"{project}_ALLOW_RUN_AS_ROOT{confirm}": "1"
    for project in ("OMPI", "PRTE")
    for confirm in ("", "_CONFIRM")
}


def through(command: list[str], latency: float) -> list[str]:
    """The words that run a command on a link of this latency, in seconds one way."""
    module = [sys.executable, "-m", "workshop.launch.delayed_link", str(latency)]
    return [*NAMESPACE, *module, *command]


@cache
def unavailable_reason() -> str | None:
    """Why there can be no such link here, as a sentence; None if there can."""
    try:
        done = subprocess.run(through(["true"], 0), capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"No delayed link: {error}."
    if done.returncode:
        return f"No delayed link: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}."
    return None


def main() -> int:
    """Make the link, run the command on it, return its exit status."""
    latency, command = float(sys.argv[1]), sys.argv[2:]
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", DEVICE.encode(), IFF_TUN | IFF_NO_PI))
    for rule in RULES:
        subprocess.run(["ip", *rule.split()], check=True)
    # A packet that comes in has an address of this machine as its source: let it.
    settings = {f"{DEVICE}/accept_local": "1", f"{DEVICE}/rp_filter": "0", "all/rp_filter": "0"}
    for name, value in settings.items():
        Path("/proc/sys/net/ipv4/conf", name).write_text(value)
    on_their_way: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
    for relay in (_receive, _deliver):
        threading.Thread(target=relay, args=(device, on_their_way, latency), daemon=True).start()
    return subprocess.run(command).returncode


def _receive(device: int, on_their_way: SimpleQueue, latency: float) -> None:
    while True:
        packet = os.read(device, MTU + 1)
        on_their_way.put((time.monotonic() + latency, packet))


def _deliver(device: int, on_their_way: SimpleQueue, latency: float) -> None:
    while True:
        due, packet = on_their_way.get()
        time.sleep(max(0.0, due - time.monotonic()))
        os.write(device, packet)


if __name__ == "__main__":
    sys.exit(main())
