"""How much of an all-reduce DDP hides behind backward(), from what show_overlap.py printed.

seconds: setting -> the seconds of a step, by block, of the settings of that script.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

FORWARD, COMPUTE, SEND = "forward only", "computing only", "sending only"

Seconds = Mapping[str, Sequence[float]]


def hidden(seconds: Seconds) -> dict[str, float]:
    """The part of the sending that each way of training hides: the median over the blocks."""
    return {way: statistics.median(parts) for way, parts in hidden_by_round(seconds).items()}


def hidden_by_round(seconds: Seconds) -> dict[str, list[float]]:
    """The part of the sending that each way of training hides, block by block.

    What computing and then sending would take, less what the step took, of the sending. It can be
    below 0: a way of training may also cost something.
    """
    return {
        setting: [
            (compute + send - step) / send
            for compute, send, step in zip(seconds[COMPUTE], seconds[SEND], steps, strict=True)
        ]
        for setting, steps in seconds.items()
        if setting not in (FORWARD, COMPUTE, SEND)
    }


def most_hidden(seconds: Seconds) -> float:
    """The largest part of the sending that backward() is long enough to hide, at most 1."""
    return min(
        1.0,
        statistics.median(
            (compute - forward) / send
            for forward, compute, send in zip(
                seconds[FORWARD], seconds[COMPUTE], seconds[SEND], strict=True
            )
        ),
    )
