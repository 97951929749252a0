"""What the lesson room shows in a real kernel: by hand, and where nobody can answer."""

from workshop.lesson.results import MIME

WIDGET = "application/vnd.jupyter.widget-view+json"


def displayed(messages):
    return [content["data"] for kind, content in messages if kind == "display_data"]


def run(kernel, code, by_hand):
    """The messages that a cell's run leaves. by_hand: as a browser asks, which can answer."""
    _, client = kernel
    messages = []
    client.execute_interactive(
        code, allow_stdin=by_hand, stdin_hook=print, output_hook=messages.append, timeout=60
    )
    return [(message["msg_type"], message["content"]) for message in messages]


def test_a_guess_by_hand_and_by_program(kernel):
    code = 'import workshop; guess = workshop.guess(ranks="How many?")'
    shown = displayed(run(kernel, code, by_hand=True))
    assert [WIDGET in data for data in shown] == [False, True] and "How many?" in str(shown[1])
    messages = run(kernel, code, by_hand=False)
    assert not any(WIDGET in data for data in displayed(messages))
    (printed,) = [content["text"] for kind, content in messages if kind == "stream"]
    assert "How many?" in printed and 'guess["ranks"] = ' in printed


def test_compare_is_shown_in_the_middle_of_a_cell_and_its_result_is_kept(kernel):
    code = 'import workshop; guess = workshop.guess(ranks="How many?")\n'
    run(kernel, code, by_hand=False)
    shown = displayed(run(kernel, "guess.compare(ranks=4)\nx = 1", by_hand=False))
    assert "<table" in shown[0]["text/html"] and "How many?" in shown[0]["text/html"]
    row = {"your guess": "-", "measured": "4", "off by": "-"}
    questions = [["How many?", []]]
    saved = {"asked": questions, "guesses": {"How many?": True}, "answers": {"How many?": row}}
    assert shown[1] == {MIME: saved}


def test_a_notebook_shows_the_message_of_a_wrong_answer_and_nothing_else(kernel):
    code = 'import workshop; workshop.check("00.1", lambda: 1)'
    (error,) = [content for kind, content in run(kernel, code, True) if kind == "error"]
    assert error["ename"] == "Wrong"
    assert error["traceback"] == ["00.1: It returned 1. Return the regular expression, a string."]


def test_a_notebook_names_the_cells_line_that_failed(kernel):
    code = 'import workshop\ndef f():\n    return 1 / 0\nworkshop.check("00.1", f)'
    (error,) = [content for kind, content in run(kernel, code, True) if kind == "error"]
    assert error["evalue"] == (
        "00.1: your answer stopped with ZeroDivisionError: division by zero, "
        "in line 3 of f: `return 1 / 0`."
    )
