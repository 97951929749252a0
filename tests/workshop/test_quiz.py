"""`workshop.quiz`: the files' form, the questions, the marks, the instructor's page."""

import pytest

import workshop
from workshop.course import answers
from workshop.lesson import questions
from workshop.lesson import quiz as asking
from workshop.lesson.questions import BadQuiz, load

ONE = """
[[question]]
text = "How many of `world_size`?"
choices = ["none", "one < two", "all"]
answer = {answer}
why = "Because of `rank`."
"""


@pytest.fixture
def write_quiz(tmp_path):
    def write(*parts, lesson="01"):
        (tmp_path / f"lesson_{lesson}.toml").write_text("".join(parts))
        return tmp_path

    return write


@pytest.fixture
def small(write_quiz, monkeypatch):
    """Lesson 01's quiz; the right answers are b, a, c."""
    folder = write_quiz(*(ONE.format(answer=answer) for answer in (1, 0, 2)))
    monkeypatch.setattr(asking, "load", lambda lesson: load(lesson, folder))
    return folder


@pytest.mark.parametrize("lesson", questions.lessons())
def test_every_quiz_can_be_loaded(lesson):
    found = load(lesson)
    assert len(found) == 3
    assert len({one.answer for one in found}) > 1, "always the same letter"


def test_there_are_quizzes():
    assert "00" in questions.lessons()


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("answer = 1", "answer = 3", r"lesson_01.toml, question 2: answer is 3"),
        ("answer = 1", "answer = -1", "choices count from 0"),
        ("answer = 1", "answer = true", "must be a int"),
        ("answer = 1", 'answer = "b"', "must be a int"),
        ("answer = 1", "", "it must have"),
        ("answer = 1", "answer = 1\nhint = 'x'", "it must have"),
        ('"none", ', "", "3 or 4 texts"),
        ('"none"', "1", "3 or 4 texts"),
        ('"none"', '"all"', "two choices are the same"),
        ('why = "Because of `rank`."', 'why = ""', "why is ''"),
        ("[[question]]", "[[questions]]", "must hold 3"),
        ("answer = 1", "answer = = 1", "no valid TOML"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(write_quiz, old, new, said):
    good = ONE.format(answer=1)
    assert old in good
    folder = write_quiz(good, good.replace(old, new), good)
    with pytest.raises(BadQuiz, match=said):
        load("01", folder)


def test_two_questions_are_too_few(write_quiz):
    with pytest.raises(BadQuiz, match="must hold 3"):
        load("01", write_quiz(ONE.format(answer=0), ONE.format(answer=0)))


def test_a_lesson_without_a_quiz(small):
    with pytest.raises(ValueError, match=r"'07' has no quiz\. These have one: 01"):
        load("07", small)


def test_without_a_live_notebook_the_questions_are_printed(small, capsys):
    assert workshop.quiz("01") is None
    said = capsys.readouterr().out
    assert said.count("How many of `world_size`?") == 3 and "   b) one < two" in said
    assert 'workshop.quiz("01", answers="abc")' in said
    assert "Because" not in said, "the reason comes after the answer"


@pytest.mark.parametrize("given", ["bac", "BAC", "b, a, c"])
def test_right_answers(small, given):
    assert workshop.quiz("01", answers=given).right == 3


def test_the_marks_say_which_is_right_and_why(small):
    marks = workshop.quiz("01", answers="bbc")
    assert list(marks.table["result"]) == ["right", "not so", "right"]
    assert marks.table["your answer"][1] == "one < two"
    assert "2. not so: one < two\n   Because of `rank`." in repr(marks)
    page = marks._repr_html_()
    assert ">one &lt; two</td>" in page and "Because of <code>rank</code>." in page


@pytest.mark.parametrize(
    "given, said",
    [("ba", "2 letters for 3 questions"), ("bacb", "4 letters"), ("bad", "Question 3 has no")],
)
def test_answers_that_do_not_fit(small, given, said):
    with pytest.raises(ValueError, match=said):
        workshop.quiz("01", answers=given)


def test_radio_buttons_tell_at_once(small):
    block = asking.as_widget(load("01", small)).children[0]
    title, radio, said = block.children
    assert "<code>world_size</code>" in title.value and said.value == ""
    assert radio.index is None
    radio.index = 0
    assert "Not so." in said.value and "Because of <code>rank</code>." in said.value
    radio.index = 1
    assert "Right." in said.value and "Because" in said.value


def test_the_instructors_page(small, tmp_path):
    (tmp_path / "01_x.py").write_text("# %% [markdown]\n# # 01 · The title\n")
    page = answers.answers_page(small, tmp_path)
    assert "## 01 · The title\n\nIn short: `bac`." in page
    assert page.count("**b) one < two** (right)") == 1
    assert page.count("(right)") == 3 and page.count("Because") == 3
