"""Addresses, host:port, of a cluster's processes."""

import socket


def listens(address: str, timeout: float) -> bool:
    """Whether somebody takes connections there; `timeout` seconds are waited for an answer."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=timeout):
            return True
    except OSError:
        return False
