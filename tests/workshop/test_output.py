"""Records among what a script prints; a text that changes at a terminal, the last one elsewhere."""

import os
import pty
import subprocess
import sys

from workshop.output import events

PROGRAM = """
from workshop.output import Progress
with Progress() as progress:
    progress.update("Starting, 1 s\\nsecond line")
    progress.update("Training, 2 s")
    {}
    progress.finish("Completed " + 100 * "x")
"""
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


def at_terminal(program: str) -> str:
    """What the program writes to a terminal."""
    ours, theirs = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=theirs, stderr=subprocess.DEVNULL, env=env
    ):
        os.close(theirs)
        written = b""
        try:
            while chunk := os.read(ours, 4096):
                written += chunk
        except OSError:  # Linux's way to say that the other end is closed
            pass
    os.close(ours)
    return written.decode()


def test_elsewhere_only_the_last_text_is_printed_and_in_one_line():
    command = [sys.executable, "-c", PROGRAM.format("")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "Completed " + 100 * "x" + "\n"


def test_at_a_terminal_each_text_takes_the_place_of_the_one_before():
    written = at_terminal(PROGRAM.format(""))
    assert written.index("Starting") < written.index("Training") < written.index("Completed")
    assert written.count("\x1b[2K") >= 2, "what was there before is erased"
    assert written.rstrip().endswith("Completed " + 100 * "x")
    assert written.rindex(SHOW) > written.rindex(HIDE)


def test_an_interrupt_leaves_a_terminal_with_its_cursor():
    written = at_terminal(PROGRAM.format("raise KeyboardInterrupt"))
    assert "Completed" not in written
    assert written.rindex(SHOW) > written.rindex(HIDE)


def test_records_of_one_kind_in_their_order():
    lines = ['{"event": "epoch", "epoch": 1}', "x", '{"event": "start"}']
    lines += ["", '{"event": broken', "[1]", '"event"', '{"epoch": 1}', ' {"event": "epoch"}']
    lines.append('{"event": "epoch", "epoch": 2}')
    assert [record["epoch"] for record in events(lines, "epoch")] == [1, 2]
    assert events(lines, "nothing") == []
