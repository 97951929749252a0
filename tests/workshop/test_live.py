"""Fields appear where somebody can fill them in, and text where nobody can."""

import pytest
from jupyter_client.manager import start_new_kernel

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(scope="module")
def kernel():
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client, code, by_hand):
    """The messages that a cell's run leaves. by_hand: as a browser asks, which can answer."""
    found = []
    client.execute_interactive(
        code, allow_stdin=by_hand, stdin_hook=print, output_hook=found.append, timeout=60
    )
    return [(one["msg_type"], one["content"]) for one in found]


@pytest.mark.parametrize(
    "code, text",
    [
        ('import workshop; guess = workshop.predict(ranks="How many?")', "How many?"),
        ('import workshop; workshop.quiz("00")', 'answers="abc"'),
    ],
    ids=["predict", "quiz"],
)
def test_by_hand_and_by_program(kernel, code, text):
    (shown,) = [content["data"] for kind, content in run(kernel, code, True) if "display" in kind]
    assert WIDGET in shown and text in shown["text/plain"]
    messages = run(kernel, code, by_hand=False)
    assert not [content for kind, content in messages if kind == "display_data"]
    (printed,) = [content["text"] for kind, content in messages if kind == "stream"]
    assert text in printed


def test_a_notebook_shows_the_message_of_a_wrong_answer_and_nothing_else(kernel):
    code = 'import workshop; workshop.check("00.1", lambda: 1)'
    (error,) = [content for kind, content in run(kernel, code, True) if kind == "error"]
    assert error["ename"] == "Wrong"
    assert error["traceback"] == ["00.1: It returned 1. Return the regular expression, a text."]


def test_a_notebook_names_the_cells_line_that_failed(kernel):
    code = 'import workshop\ndef f():\n    return 1 / 0\nworkshop.check("00.1", f)'
    (error,) = [content for kind, content in run(kernel, code, True) if kind == "error"]
    assert error["evalue"] == (
        "00.1: your answer stopped with ZeroDivisionError: division by zero, "
        "in line 3 of f: `return 1 / 0`."
    )
