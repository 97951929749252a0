"""Progress bars: shown to a person at a terminal, silent everywhere else."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm


def bar(total: int, text: str, *, unit: str = "B", quiet: bool = False) -> Any:
    """Return a tqdm bar; bytes are scaled (kB, MB).

    The bar is off with `quiet` and wherever standard error is not a terminal, so that
    log files and notebooks stay readable (tqdm's `disable=None` means exactly that).
    """
    return tqdm(
        total=total,
        desc=text,
        unit=unit,
        unit_scale=unit == "B",
        unit_divisor=1000,
        leave=False,
        disable=True if quiet else None,
    )


def say(text: str, *, quiet: bool = False) -> None:
    """Print one line of result to standard output, unless `quiet`."""
    if not quiet:
        print(text, flush=True)
