"""`workshop.guess`: guesses by hand and by field, and the table that compares them."""

import numpy as np
import pytest

import workshop
from workshop.lesson import guess as module
from workshop.lesson.guess import to_number

NUMBER = {"ranks": "How many ranks will there be?"}
CHOICE = {"faster": ("Which is faster?", ["ring", "tree"])}


def row(guess, **measured):
    (row,) = guess.table(**measured).to_dict("records")
    return tuple(row.values())


def test_without_a_live_notebook_it_prints_the_questions_and_how_to_answer(capsys):
    guess = workshop.guess(**NUMBER, **CHOICE)
    message = capsys.readouterr().out
    assert "How many ranks will there be?" in message and 'guess["ranks"] = ' in message
    assert "Which is faster?" in message and "guess[\"faster\"] = 'tree'" in message
    assert guess["ranks"] is None


def test_a_guess_and_the_measurement_stand_side_by_side():
    guess = workshop.guess(**NUMBER, **CHOICE)
    guess["ranks"], guess["faster"] = 3, "tree"
    table = guess.table(ranks=4, faster="ring")
    assert list(table.index) == ["How many ranks will there be?", "Which is faster?"]
    assert table.columns.tolist() == ["your guess", "measured", "off by"]
    assert table.values.tolist() == [["3", "4", "25 % too low"], ["tree", "ring", "another answer"]]
    assert row(guess, faster="tree") == ("tree", "tree", "right")


@pytest.mark.parametrize(
    "guessed, measured, expected",
    [
        (4, 4, "nothing"),
        (0.999, 1.0, "nothing"),
        (5, 4, "25 % too high"),
        (1, 4, "4 times too low"),
        (1000, 4, "250 times too high"),
        (-8, -4, "2 times too low"),
        (2, 0, "2 too high"),
        (-1, 3, "4 too low"),
        (0, 0, "nothing"),
        (None, 4, "-"),
        (np.float64(0.25), np.int64(1_234_567), "4,938,268 times too low"),
    ],
)
def test_how_far_off(guessed, measured, expected):
    guess = workshop.guess(**NUMBER)
    guess["ranks"] = guessed
    assert row(guess, ranks=measured)[-1] == expected


def test_unknown_names_list_those_that_there_are():
    guess = workshop.guess(**NUMBER, **CHOICE)
    for action in (
        lambda: guess.compare(rank=4),
        lambda: guess["rank"],
        lambda: guess.__setitem__("rank", 4),
    ):
        with pytest.raises(ValueError, match=r"no question 'rank'.*ranks, faster"):
            action()


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("ranks", "4", "not a number"),
        ("ranks", True, "not a number"),
        ("faster", "Ring", "Choose 'ring' or 'tree'"),
    ],
)
def test_an_answer_of_another_kind_is_refused(name, value, message):
    guess = workshop.guess(**NUMBER, **CHOICE)
    with pytest.raises(ValueError, match=message):
        guess[name] = value
    assert guess[name] is None


def test_what_is_an_error_of_the_lesson():
    with pytest.raises(ValueError, match="'star' is not a choice"):
        workshop.guess(**CHOICE).table(faster="star")
    with pytest.raises(TypeError, match="needs a question"):
        workshop.guess()


def test_the_fields_set_the_guess():
    guess = workshop.guess(**NUMBER, **CHOICE)
    number, choice = guess.fields().children
    field, message = number.children[1].children
    for text, value, problem in (
        (" 4 ", 4, ""),
        ("four", None, "'four' is not a number"),
        ("", None, ""),
    ):
        field.value = text
        assert guess["ranks"] == value and message.value.split(":")[0] == problem
    choice.children[1].children[0].value = "tree"
    assert guess["faster"] == "tree"


@pytest.mark.parametrize("text", ["1,5", "nan", "inf", "4 ranks"])
def test_what_is_noto_number(text):
    with pytest.raises(ValueError, match="number"):
        to_number(text)


def test_the_head_of_the_column_says_where_an_answer_is_from():
    guess = workshop.guess(**NUMBER)
    for source, head in (("recorded", "recorded elsewhere"), ("computed", "computed")):
        assert guess.table(source, ranks=4).columns.tolist() == ["your guess", head, "off by"]
    with pytest.raises(ValueError, match="expected one of measured, recorded, computed"):
        guess.table("guessed", ranks=4)


def test_a_question_that_was_never_compared_is_found(monkeypatch):
    saved, ranks, faster = {}, NUMBER["ranks"], CHOICE["faster"][0]
    monkeypatch.setattr(module, "_questions", [])
    monkeypatch.setattr(module, "_answers", {})
    monkeypatch.setattr(module, "save_results", saved.update)
    guess = workshop.guess(**NUMBER, **CHOICE)
    assert saved["guesses"] == {ranks: False, faster: False}
    guess.compare(ranks=4)
    assert saved["guesses"] == {ranks: True, faster: False}
    guess.compare(faster="ring")
    assert saved["guesses"] == {ranks: True, faster: True}
