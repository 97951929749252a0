"""What scripts print, read; and a text shown to people, in a cell or at a terminal.

Scripts print records, one JSON object a line: {"event": "epoch", "epoch": 1, ...}.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

if TYPE_CHECKING:
    import pandas as pd


class Progress:
    """One text that changes, in a notebook and at a terminal; elsewhere only the last one.

    with Progress() as progress:
        progress.update("Starting, 3 s")
        progress.finish("Completed")
    """

    def __init__(self) -> None:
        self._cell = in_notebook()
        self._handle = None
        self._terminal = Live(console=Console(), auto_refresh=False, transient=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_) -> None:
        self._terminal.stop()  # else an interrupt would leave a terminal without a cursor

    def update(self, text: str) -> None:
        """Replace what is shown."""
        if self._cell:
            self._display(text)
        elif self._terminal.console.is_terminal:
            self._terminal.start()
            self._terminal.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def finish(self, text: str) -> None:
        """Replace what is shown by the last text, which stays."""
        if self._cell:
            self._display(text)
        else:
            self._terminal.stop()
            print(text, flush=True)

    def _display(self, text: str) -> None:
        # rich's own way in a notebook is a widget, which an executed copy does not keep.
        from IPython.display import display

        data = {"text/plain": text}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)


def in_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def event(text: str) -> dict | None:
    """The record in a line, or None where the line is none."""
    if not text.startswith("{"):
        return None
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) and "event" in record else None


def events(lines: Iterable[str], kind: str) -> list[dict]:
    """The records of one kind among these lines, in their order."""
    return [record for line in lines if (record := event(line)) and record["event"] == kind]


def records(lines: Iterable) -> list[dict]:
    """The records among these lines, of ranks or of a job's log, in their order."""
    return [record for line in lines if (record := line.event)]


def event_table(records: list[dict], kind: str, printed_by: str) -> pd.DataFrame:
    """The records of one kind as a table. Raises ValueError, which names `printed_by`, if none."""
    import pandas as pd

    rows = [record for record in records if record["event"] == kind]
    if not rows:
        kinds = sorted({record["event"] for record in records}) or "none"
        raise ValueError(f"{printed_by} printed no {kind!r} records, but: {kinds}.")
    return pd.DataFrame(rows).drop(columns="event").dropna(axis="columns", how="all")
