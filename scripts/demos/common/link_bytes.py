"""How much this instance sends to others: the system's own counter of its network interface."""

from pathlib import Path

from common.arguments import network_interface


class LinkBytes:
    """Counts what all processes of this instance send over its link, packet headers included.

    What goes by EFA is not counted: it passes the system by.
    """

    def __init__(self) -> None:
        self._before = sent_bytes(network_interface())

    def since_last(self) -> int | None:
        """Bytes since the last call, or since the start; None where the system doesn't count."""
        now = sent_bytes(network_interface())
        if now is None or self._before is None:
            return None
        before, self._before = self._before, now
        return now - before


def sent_bytes(interface: str, counters: Path = Path("/proc/net/dev")) -> int | None:
    """Bytes that an interface has sent since it exists; None if there is no such interface.

    counters: Linux's table; on other systems it doesn't exist.
    """
    if not counters.exists():
        return None
    for line in counters.read_text().splitlines():
        name, colon, numbers = line.partition(":")
        if colon and name.strip() == interface:
            return int(numbers.split()[8])  # eight numbers about receiving come first
    return None
