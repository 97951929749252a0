"""How narrow the links of a job's instances are: a rate, and perhaps a latency.

Written in a few words, which `LOCAL_SAGEMAKER_LINKS` in a request's Environment holds, and the
emulator's own setting too:

    200mbit         each instance sends at most this much, and receives at most this much
    200mbit 1ms     the same, and a packet is 1 ms on its way
    wide            as fast as this machine is
    by-type         what the job's instance type has on AWS, scaled down
"""

from __future__ import annotations

import dataclasses
import re

WIDE = "wide"
BY_TYPE = "by-type"
EXPECTED = "a rate such as 200mbit, a rate and a latency such as '200mbit 1ms', 'wide' or 'by-type'"

# Bit/s. Under the least a job's own start-up (its script, mpirun's messages) takes minutes; over
# the most no machine's CPU could fill the link, so that nothing would be narrow.
LEAST, MOST = 100e3, 100e9
LONGEST = 1.0  # seconds of latency one way

_UNITS = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclasses.dataclass(frozen=True)
class Links:
    """The links of one job.

    rate: bit/s, in each direction at the same time, of every instance. latency: seconds one way.
    why: who wanted it so, for the job's log.
    """

    rate: float
    latency: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        """As a person would say it: "200 Mbit/s", "1.25 Mbit/s and 1 ms"."""
        delay = f" and {self.latency * 1e3:g} ms" if self.latency else ""
        for unit, size in (("G", 1e9), ("M", 1e6)):
            if self.rate >= size:
                return f"{self.rate / size:g} {unit}bit/s{delay}"
        return f"{self.rate / 1e3:g} kbit/s{delay}"


def parse(words: str) -> Links | str:
    """What the words of a setting mean: Links, WIDE or BY_TYPE.

    Raises ValueError, with what was expected, for anything else.
    """
    parts = words.lower().split()
    if parts in ([WIDE], [BY_TYPE]):
        return parts[0]
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"'{words}' is not a setting of links: expected {EXPECTED}.")
    return Links(rate_of(parts[0]), latency_of(parts[1]) if parts[1:] else 0.0)


def rate_of(text: str) -> float:
    """Bit/s of "200mbit". Raises ValueError, with what was expected."""
    rate = _amount(text, _UNITS)
    if rate is None:
        raise ValueError(
            f"'{text}' is not a rate: expected a number and kbit, mbit or gbit, such as 200mbit."
        )
    if not LEAST <= rate <= MOST:
        raise ValueError(f"'{text}' is out of range: a link's rate is from 100kbit to 100gbit.")
    return rate


def latency_of(text: str) -> float:
    """Seconds of "1ms". Raises ValueError, with what was expected."""
    seconds = _amount(text, _TIMES)
    if seconds is None:
        raise ValueError(
            f"'{text}' is not a latency: expected a number and us, ms or s, such as 1ms."
        )
    if seconds > LONGEST:
        raise ValueError(f"'{text}' is too long: a link's latency one way is at most 1s.")
    return seconds


def _amount(text: str, units: dict[str, float]) -> float | None:
    """A number and one of the units, written together; None if the text is something else."""
    found = re.fullmatch(rf"(\d+(?:\.\d+)?)({'|'.join(units)})", text.lower())
    return float(found[1]) * units[found[2]] if found else None
