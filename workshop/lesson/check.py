"""Check a learner's answer: `workshop.check("01.1", local_slice)`.

The checks are functions in notebooks/checks/lesson_NN.py:

    @exercise("01.1")
    def local_slice(answer) -> str:
        if answer([1, 2], 0, 2) != [1]:
            raise Wrong("Rank 0 of 2 got ...; give it every second element.")
        return "Every element goes to exactly one rank."
"""

from __future__ import annotations

import contextlib
import importlib.util
import linecache
import re
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from workshop.paths import CHECKS

SECONDS = 60.0  # for one check: a busy laptop, a few ranks started

_CHECKS: dict[str, tuple[Callable, float]] = {}
_NUMBER = re.compile(r"(\d\d)\.[1-9]")
_KIT = Path(__file__).resolve().parent.parent, CHECKS
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


class Wrong(Exception):
    """An answer is wrong; the message names the mistake. A notebook shows nothing but it."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class _TookTooLong(BaseException):
    """Not an Exception, so that an answer's `except Exception` does not swallow it."""


def unanswered(number: str) -> str:
    """The message of the NotImplementedError that an untouched answer raises."""
    return f"Exercise {number}: write your code here."


def exercise(number: str, seconds: float = SECONDS) -> Callable[[Callable], Callable]:
    """Register the check of exercise NN.K.

    The decorated function takes the answer, raises Wrong, and returns one sentence for a right
    answer. seconds: after which an answer that has not returned is given up.
    Raises ValueError for a number of another form or one that is taken.
    """
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{number!r} is not an exercise's number: write it like 01.2.")

    def register(function: Callable) -> Callable:
        before = _CHECKS.get(number)
        if before and before[0].__qualname__ != function.__qualname__:
            raise ValueError(f"Exercise {number} has two checks: one must have another number.")
        _CHECKS[number] = (function, seconds)
        return function

    return register


def check(number: str, answer) -> None:
    """Print that the answer is right and why, or raise Wrong with what to fix.

    An answer that raises an error of its own, or does not return in time, is Wrong too; the
    message names its line.
    Raises ValueError for a number that no exercise has.
    """
    function, seconds = _find(number)
    try:
        with _limit(seconds):
            praise = function(answer)
    except Wrong as wrong:
        raise Wrong(f"{number}: {wrong}") from wrong.__cause__
    except _TookTooLong as error:
        raise Wrong(
            f"{number}: your answer had not returned after {seconds:g} s{_where(error)}. "
            "Does a loop never end, or does something wait for what never comes?"
        ) from None
    except (Exception, SystemExit) as error:
        raise Wrong(f"{number}{_error_message(number, error)}") from error
    if not isinstance(praise, str):
        raise TypeError(f"The check {function.__name__} must return a sentence, not {praise!r}.")
    print(f"{number}: right. {praise}")


def numbers(lesson: str) -> list[str]:
    """The numbers of a lesson's exercises. lesson: "01". Raises ValueError if it has none."""
    path = CHECKS / f"lesson_{lesson}.py"
    if not path.is_file():
        raise ValueError(f"Lesson {lesson} has no exercises.")
    name = f"workshop_checks_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sorted(number for number in _CHECKS if number.startswith(f"{lesson}."))


def _find(number: str) -> tuple[Callable, float]:
    if not (isinstance(number, str) and _NUMBER.fullmatch(number)):
        raise ValueError(f'{number!r} is no exercise\'s number: write it like "01.2".')
    known = numbers(number[:2])
    if number not in known:
        raise ValueError(f"There is no exercise {number}. There are: {', '.join(known)}.")
    return _CHECKS[number]


def _error_message(number: str, error: BaseException) -> str:
    """Explain an error of the answer, or of a check that could not use it."""
    if unanswered(number) in _all_text(error):
        return (
            " is not answered yet: write your code in place of the line `raise "
            "NotImplementedError(...)`, run that cell, then run this one again."
        )
    name = f"{type(error).__name__}: {error}".rstrip(": ")
    where = _where(error)
    if where:
        return f": your answer stopped with {name}{where}."
    return (
        f": your answer could not be checked: {name}{_where(error, of_kit=True)}. Does it "
        "take and return what the exercise asks for?"
    )


def _all_text(error: BaseException | None) -> str:
    """The error's text and that of the errors that led to it."""
    text, seen = "", set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        text += f"{error}\n"
        error = error.__cause__ or error.__context__
    return text


def _where(error: BaseException, of_kit: bool = False) -> str:
    """ ", in line N of function: `text`" for the innermost line of the answer; or of the kit."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_kits(frame) == of_kit and not _is_librarys(frame):
            text = linecache.getline(frame.f_code.co_filename, line).strip()
            name = frame.f_code.co_qualname
            name = "the cell" if name == "<module>" else name.replace("<locals>.", "")
            place = f", in line {line} of {name}" + (f": `{text}`" if text else "")
    return place


def _is_kits(frame: FrameType) -> bool:
    return any(Path(frame.f_code.co_filename).is_relative_to(folder) for folder in _KIT)


def _is_librarys(frame: FrameType) -> bool:
    return frame.f_code.co_filename.startswith((*_LIBRARIES, "<frozen"))


@contextlib.contextmanager
def _limit(seconds: float):
    """Raise _TookTooLong in the body after so many seconds. Only in the main thread."""
    if threading.current_thread() is not threading.main_thread() or sys.platform == "win32":
        yield
        return

    def ring(*_) -> None:
        raise _TookTooLong

    handler = signal.signal(signal.SIGALRM, ring)
    # Again every second: an answer may catch everything.
    before, repeat = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    began = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if before:  # somebody else's alarm (pytest's) still rings
            left = max(before - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, left, repeat)
