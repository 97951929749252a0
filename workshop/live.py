"""Text that is replaced while something goes on: in a notebook, at a terminal, in a file."""

from __future__ import annotations

import sys


class LiveText:
    """In a notebook and at a terminal one text that changes; elsewhere only the last one."""

    def __init__(self) -> None:
        self._handle = None
        self._notebook = in_notebook()
        self._terminal = not self._notebook and sys.stdout.isatty()
        self._width = 0

    def update(self, text: str) -> None:
        """Replace what is shown."""
        if self._notebook:
            self._display(text)
        elif self._terminal:
            line = text.replace("\n", " ")
            print("\r" + line.ljust(self._width), end="", flush=True)
            self._width = len(line)

    def finish(self, text: str) -> None:
        """Replace what is shown by the last text, which stays."""
        if self._notebook:
            self._display(text)
            return
        if self._terminal and self._width:
            print("\r" + " " * self._width + "\r", end="")
        print(text, flush=True)

    def _display(self, text: str) -> None:
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
