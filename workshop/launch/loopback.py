"""This machine's own network: where ranks that all run here meet."""

from __future__ import annotations

import socket
import sys

# What gloo must be told; it would otherwise take the address of this machine's name.
INTERFACE = "lo0" if sys.platform == "darwin" else "lo"


def free_port() -> int:
    """A TCP port of this machine that nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
