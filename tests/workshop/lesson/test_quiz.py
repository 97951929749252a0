"""`workshop.quiz`: the files' form, what a click shows, the instructor's page."""

from html.parser import HTMLParser

import pytest

import workshop
from tools import tables
from workshop.lesson import quiz as module
from workshop.lesson.quiz import BadQuiz, lessons, load

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
    monkeypatch.setattr(module, "load", lambda lesson: load(lesson, folder))
    return folder


@pytest.mark.parametrize("lesson", lessons())
def test_every_quiz_can_be_loaded(lesson):
    found = load(lesson)
    assert len(found) == 3
    assert len({one.answer for one in found}) > 1, "always the same letter"


def test_there_are_quizzes():
    assert "00" in lessons()


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("answer = 1", "answer = 3", r"lesson_01.toml, question 2: answer is 3"),
        ("answer = 1", "answer = -1", "choices count from 0"),
        ("answer = 1", "answer = true", "answer is True"),
        ("answer = 1", 'answer = "b"', "answer is 'b'"),
        ("answer = 1", "", "missing .* 'answer'"),
        ("answer = 1", "answer = 1\nhint = 'x'", "unexpected .* 'hint'"),
        ('"none", ', "", "3 or 4 texts"),
        ('"none"', "1", "each choice must be a text"),
        ('"none"', '"all"', "two choices are the same"),
        ('why = "Because of `rank`."', 'why = ""', "why and each choice must be a text"),
        ("[[question]]", "[[questions]]", "must hold 3 questions, not 2"),
        ("answer = 1", "answer = = 1", "lesson_01.toml is not a list of questions"),
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


class Choices(HTMLParser):
    """The choices of a quiz's HTML as {summary: what a click unfolds}."""

    def __init__(self, page):
        super().__init__()
        self.found, self.inside = [], None
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        if tag == "details":
            assert not attributes, "a choice must be folded at first"
            self.found.append({"summary": "", "details": ""})
        if tag in ("summary", "details"):
            self.inside = tag

    def handle_endtag(self, tag):
        self.inside = {"summary": "details", "details": None}.get(tag, self.inside)

    def handle_data(self, data):
        if self.inside:
            self.found[-1][self.inside] += data


def test_a_click_on_a_choice_says_whether_it_is_right_and_why(small):
    page = module.as_html(load("01", small))
    found = Choices(page).found
    assert [one["summary"] for one in found] == ["none", "one < two", "all"] * 3
    right = [one["details"].startswith("Right. Because of rank.") for one in found]
    assert right == [False, True, False, True, False, False, False, False, True]
    assert all(one["details"].startswith("No. Because") for one in found if "Right" not in str(one))
    assert "<code>world_size</code>" in page and "one &lt; two" in page


def test_where_nothing_can_be_clicked_the_questions_are_text(small, capsys):
    assert workshop.quiz("01") is None
    shown = capsys.readouterr().out
    assert shown.count("How many of `world_size`?") == 3 and "   b) one < two" in shown
    assert "Because" not in shown, "the reason comes after the answer"


def test_the_instructors_page(small, monkeypatch):
    monkeypatch.setattr(module, "lessons", lambda: ["01"])
    page = tables.quiz_answers()
    assert "## 01 · Data parallelism\n\nIn short: `bac`." in page
    assert page.count("**b) one < two** (right)") == 1
    assert page.count("(right)") == 3 and page.count("Because") == 3
