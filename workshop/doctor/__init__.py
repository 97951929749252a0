"""What this machine must have and has: one check a need."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from workshop.doctor import machine, network, software
from workshop.doctor.result import Check, fail


def all_checks(port: int) -> list[tuple[str, Callable[[], Check]]]:
    """(name, check) in the order in which they are shown. port: the local endpoint's."""
    return [
        ("Python", software.python),
        ("packages", software.packages),
        ("C++ compiler", software.compiler),
        ("Horovod", software.horovod),
        ("mpirun", network.mpirun),
        ("iproute2", network.iproute2),
        ("namespaces", network.namespaces),
        ("tc tbf", network.tbf),
        ("tc netem", network.netem),
        ("disk", machine.disk),
        ("memory", machine.memory),
        ("cores", machine.cores),
        (f"port {port}", lambda: machine.endpoint_port(port)),
        ("port 8888", machine.lab_port),
    ]


def examine(port: int) -> Iterator[tuple[str, Check]]:
    """Run every check. A check that breaks is a FAIL with its error, not an end."""
    for name, check in all_checks(port):
        try:
            yield name, check()
        except Exception as error:
            yield name, fail(f"the check itself broke: {error!r}", "report this as a bug")
