"""`workshop.quiz`: the files' form, what a click shows, the instructor's page."""

import pytest
from bs4 import BeautifulSoup

import workshop
from tools import tables
from workshop.lesson import quiz as module
from workshop.lesson.quiz import lessons, load

QUESTION = """
[[question]]
text = "How many of `world_size`?"
choices = ["none", "one < two", "all"]
answer = {answer}
why = "Because of `rank`."
"""


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Lesson 01's quiz; the right answers are b, a, c."""
    quiz = "".join(QUESTION.format(answer=answer) for answer in (1, 0, 2))
    (tmp_path / "lesson_01.toml").write_text(quiz)
    monkeypatch.setattr(module, "load", lambda lesson: load(lesson, tmp_path))
    return tmp_path


def choices(page):
    """(a choice, what a click on it unfolds) of all choices of a quiz's HTML."""
    folded = BeautifulSoup(page, "html.parser")("details")
    assert not any(choice.attrs for choice in folded), "a choice must be folded at first"
    return [(choice.summary.extract().get_text(), choice.get_text()) for choice in folded]


@pytest.mark.parametrize("lesson", lessons())
def test_every_quiz_has_three_or_four_whole_questions(lesson):
    questions = load(lesson)
    assert len(questions) in (3, 4)
    assert len({question.answer for question in questions}) > 1, "always the same letter"
    for question in questions:
        assert all([question.text, *question.why, *question.choices])
        assert len(set(question.choices)) == len(question.choices) in (3, 4)
        assert type(question.answer) is int and 0 <= question.answer < len(question.choices)


def test_before_and_after_has_ten_questions_and_is_printed_without_answers():
    questions = module.read(module.QUIZZES / "before_and_after.toml")
    assert len(questions) == 10
    page, answers = tables.before_and_after(), tables.quiz_answers()
    for question in questions:
        assert len(set(question.choices)) == len(set(question.why)) == 4
        assert question.text in page and all(choice in page for choice in question.choices)
        assert not any(why in page for why in question.why)
        assert all(why in answers for why in question.why)


def test_an_answer_to_each_choice_is_shown_at_that_choice_only(tmp_path):
    answers = '["too few", "yes", "too many"]'
    question = QUESTION.format(answer=1).replace('"Because of `rank`."', answers)
    (tmp_path / "lesson_01.toml").write_text(question)
    (question,) = load("01", tmp_path)
    shown = [unfolded for _, unfolded in choices(module.as_html([question]))]
    assert shown == ["No. too few", "Right. yes", "No. too many"]


def test_a_choice_without_an_answer_is_refused(tmp_path):
    question = QUESTION.format(answer=1).replace('"Because of `rank`."', '["too few", "yes"]')
    (tmp_path / "lesson_01.toml").write_text(question)
    with pytest.raises(ValueError, match="3 choices and 2 answers: How many"):
        load("01", tmp_path)


def test_a_lesson_without_a_quiz(small):
    with pytest.raises(ValueError, match=r"'07' has no quiz\. These have one: 01"):
        load("07", small)


def test_a_click_on_a_choice_says_whether_it_is_right_and_why(small):
    page = module.as_html(load("01", small))
    summaries, unfolded = zip(*choices(page), strict=True)
    assert list(summaries) == ["none", "one < two", "all"] * 3
    verdicts = [text.split(" of rank")[0] for text in unfolded]
    right, wrong = "Right. Because", "No. Because"
    assert verdicts == [wrong, right, wrong, right, wrong, wrong, wrong, wrong, right]
    assert "<code>world_size</code>" in page and "one &lt; two" in page


def test_where_nothing_can_be_clicked_the_questions_are_text(small, capsys):
    assert workshop.quiz("01") is None
    shown = capsys.readouterr().out
    assert shown.count("How many of `world_size`?") == 3 and "   b) one < two" in shown
    assert "Because" not in shown, "the reason comes after the answer"


def test_the_instructors_page(small, monkeypatch):
    monkeypatch.setattr(module, "lessons", lambda: ["01"])
    page, _, _ = tables.quiz_answers().partition("## Before and after")
    assert "## 01 · Data parallelism\n\nIn short: `bac`." in page
    assert page.count("**b) one < two** (right)") == 1
    assert page.count("(right)") == 3 and page.count("Because") == 3
