"""`workshop.check`: what it tells of right, wrong, failing, endless and untouched answers."""

import signal
import threading
import time
from unittest import mock

import pytest

import workshop
from workshop.lesson import check as checking
from workshop.lesson.check import Wrong, exercise
from workshop.lesson.check import numbers as lesson_numbers


@pytest.fixture
def number(monkeypatch):
    """An exercise that calls its answer with 2 and wants 4."""
    monkeypatch.setattr(checking, "_CHECKS", {})
    monkeypatch.setattr(checking, "numbers", lambda lesson: sorted(checking._CHECKS))

    @exercise("01.1", seconds=0.3)
    def double(answer) -> str:
        result = answer(2)
        if result + 0 != 4:
            raise Wrong(f"It returned {result} for 2; it must be 4.")
        return "It doubles."

    return "01.1"


def message_of(number, answer):
    with pytest.raises(Wrong) as caught:
        workshop.check(number, answer)
    return str(caught.value)


def test_a_right_answer_is_said_to_be_right(number, capsys):
    assert workshop.check(number, lambda x: 2 * x) is None
    assert capsys.readouterr().out == "01.1: right. It doubles.\n"


def test_an_untouched_stub_is_not_answered(number):
    def stub(x):
        raise NotImplementedError("Exercise 01.1: write your code here.")

    def wrapped(x):  # as a pool of ranks tells what one of them raised
        try:
            stub(x)
        except NotImplementedError as error:
            raise RuntimeError(f"rank 0: {error}") from None

    for answer in (stub, wrapped):
        assert message_of(number, answer).startswith("01.1 is not answered yet: write your code")


def test_another_not_implemented_error_is_an_error_like_others(number):
    def answer(x):
        raise NotImplementedError("later")

    assert "your answer stopped with NotImplementedError: later" in message_of(number, answer)


def test_what_the_check_cannot_use_is_told_with_the_checks_line():
    message = message_of("00.1", 3)
    assert "00.1: your answer could not be checked: TypeError: 'int' object is not" in message
    assert "train_loss_regex: `pattern = answer()`. Does it take and return" in message


def test_an_endless_answer_that_catches_everything_is_given_up_and_named(number):
    caught = []

    def answer(x):
        while len(caught) < 2:
            try:
                time.sleep(10)
            except BaseException as error:
                caught.append(error)
        time.sleep(10)

    message = message_of(number, answer)
    assert len(caught) == 2
    assert "had not returned after 0.3 s, in line" in message and "answer: `" in message


def test_an_alarm_of_somebody_else_goes_on(number):
    before = signal.getitimer(signal.ITIMER_REAL)
    handler = signal.getsignal(signal.SIGALRM)
    signal.setitimer(signal.ITIMER_REAL, 1000)
    try:
        workshop.check(number, lambda x: 4)
        assert 990 < signal.getitimer(signal.ITIMER_REAL)[0] <= 1000
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)


def test_it_works_outside_the_main_thread(number, capsys):
    thread = threading.Thread(target=workshop.check, args=(number, lambda x: 4))
    thread.start()
    thread.join()
    assert "right" in capsys.readouterr().out


def test_an_interrupt_is_not_an_answer(number):
    with pytest.raises(KeyboardInterrupt):
        workshop.check(number, mock.Mock(side_effect=KeyboardInterrupt))


def test_unknown_numbers(number):
    with pytest.raises(ValueError, match=r"There is no exercise 01\.7\. There are: 01\.1"):
        workshop.check("01.7", None)
    with pytest.raises(ValueError, match="Lesson 77 has no exercises"):
        lesson_numbers("77")
    for wrong in ("1.1", "01", 1.1, "01.0", "01.1 "):
        with pytest.raises(ValueError, match="write it like"):
            workshop.check(wrong, None)


def test_a_check_that_returns_nothing_is_an_error_of_the_lesson(number):
    exercise("01.2")(lambda answer: None)
    with pytest.raises(TypeError, match="must return a sentence"):
        workshop.check("01.2", 1)
