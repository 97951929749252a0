"""Where the instances of a job are: by name in namespaces, on loopback without them."""

from __future__ import annotations

import json
import os


def on_loopback() -> bool:
    """Whether the instances are plain processes, which share the machine's loopback."""
    return "LOCAL_SAGEMAKER_PORTS" in os.environ


def address(host: str, port: int) -> str:
    """`host:port`, as AWS has it; on loopback, the port that stands in for it."""
    if not on_loopback():
        return f"{host}:{port}"
    ports = json.loads(os.environ["LOCAL_SAGEMAKER_PORTS"])
    return f"localhost:{ports[host][str(port)]}"
