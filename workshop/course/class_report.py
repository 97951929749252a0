"""A class on one page: who is where, which exercise stops people, which guesses were wrong.

`hand_in` reads what a participant's own notebooks hold, as JupyterLab saved them; nothing is
recorded besides. `report` makes one page of many such files. The quizzes are not in them: a click
on a choice is answered by the page itself and leaves no trace.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from workshop.course import render
from workshop.course.lessons import lessons, number
from workshop.lesson.check import numbers
from workshop.lesson.results import read_results
from workshop.paths import NOTEBOOKS

FORMAT = 1
RIGHT, WRONG, OPEN = "right", "wrong", "open"
MARKS = {RIGHT: "✓", WRONG: "✗", OPEN: "·"}
# To the next exercise's: a message may have several lines.
SAID = re.compile(
    r"(?:^|\n|: )(\d\d\.[1-9])(: right\.|: | is not answered)((?:(?!\n\d\d\.[1-9]).)*)", re.DOTALL
)
MAX_MESSAGE = 300  # characters of a message in a hand-in


HandIn = dict[str, Any]  # what `hand_in` returns


class Unreadable(Exception):
    """A file that is no hand-in; the message says why."""


def hand_in(name: str, notebooks: Path = NOTEBOOKS) -> HandIn:
    """What a participant's notebooks hold, ready for JSON."""
    states = {}
    for path in lessons(notebooks):
        exercises = notebooks / "exercises" / path.name
        state = lesson_state(path, exercises if exercises.is_file() else None)
        if state["run"] or any(verdict != OPEN for verdict, _ in state["exercises"].values()):
            states[number(path)] = state
    when = datetime.datetime.now().astimezone().isoformat(" ", "minutes")
    return {"format": FORMAT, "name": name, "when": when, "lessons": states}


def lesson_state(lesson: Path, exercises: Path | None) -> dict[str, Any]:
    """How far a lesson was run, and what became of its exercises and guesses.

    Returns run, cells: code cells that were executed, and all. section: of the last executed one.
    exercises: number -> [state, message]. guesses: question -> the row that `compare` showed.
    """
    notebook = nbformat.read(lesson, as_version=4)
    run = cells = 0
    section = last = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            section = [section, *re.findall(r"^## (.+)$", cell.source, re.MULTILINE)][-1]
        elif cell.cell_type == "code":
            cells += 1
            if cell.execution_count is not None:
                run, last = run + 1, section
    done = _checked(exercises) if exercises else {}
    return {
        "run": run,
        "cells": cells,
        "section": last,
        "exercises": done,
        "guesses": read_results(lesson).get("answers", {}),
    }


def _checked(exercises: Path) -> dict[str, list[str]]:
    """The last word of each exercise's check; "open" where it never ran."""
    try:
        states = {exercise: [OPEN, ""] for exercise in numbers(exercises.stem[:2])}
    except ValueError:
        return {}
    for cell in nbformat.read(exercises, as_version=4).cells:
        for output in cell.get("outputs", []):
            error = output.get("evalue", "") or "\n".join(output.get("traceback", []))
            text = output.get("text", "") or error
            for exercise, verdict, rest in SAID.findall(text):
                if exercise in states:
                    state = {": right.": RIGHT, ": ": WRONG}.get(verdict, OPEN)
                    message = " ".join(rest.split())[:MAX_MESSAGE]
                    states[exercise] = [state, message if state == WRONG else ""]
    return states


def read(path: Path) -> HandIn:
    """A hand-in, as `hand_in` makes one. Raises Unreadable."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise Unreadable(f"of format {content['format']!r}; this kit reads format {FORMAT}")
        content["name"] = content["name"].strip()
        for table in (_people, exercise_results, all_guesses):
            table([content])  # raises where the content is not so
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(str(error).splitlines()[0]) from None
    except (KeyError, TypeError, AttributeError):
        raise Unreadable("not as `workshop class hand-in` writes it") from None
    if not content["name"]:
        raise Unreadable("without a name")
    return content


def read_all(paths: list[Path]) -> tuple[list[HandIn], list[str]]:
    """The hand-ins by name, and a line for each file that is none. Equal names get their file's."""
    hand_ins, broken = {}, []
    for path in paths:
        try:
            hand_ins[path] = read(path)
        except Unreadable as error:
            broken.append(f"{path.name}: {error}")
    often = Counter(person["name"] for person in hand_ins.values())
    for path, person in hand_ins.items():
        if often[person["name"]] > 1:
            person["name"] += f" ({path.name})"
    return sorted(hand_ins.values(), key=lambda person: person["name"].casefold()), broken


def not_handed_in(people: list[HandIn], roster: list[str]) -> list[str]:
    """The roster's names that no hand-in bears; case and spaces do not matter."""
    there = {_plain(person["name"].partition(" (")[0]) for person in people}
    return [name for name in roster if _plain(name) not in there]


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def page(people: list[HandIn], broken: list[str], missing: list[str] | None = None) -> str:
    """The report as HTML; whatever the files hold is escaped. missing: names of a roster."""
    results = exercise_results(people)
    tables = {
        "Who is where": ("Cells run, of all; exercises right.", _people(people)),
        "Who has which exercise right": (
            "✓ right, ✗ wrong, · open.",
            results.pivot_table("verdict", "name", "exercise", aggfunc="first").replace(MARKS),
        ),
        "Which exercise stops people": (
            "The last result of each check. Open: never checked, by somebody who has begun.",
            stopping(results),
        ),
        "Which guesses were wrong": (
            "Wrong: another choice, or a number off by a factor of two or more.",
            wrong_guesses(all_guesses(people)),
        ),
    }
    shown = [
        (title, note, table.rename_axis(index=None, columns=None).to_html(na_rep="", border=0))
        for title, (note, table) in tables.items()
    ]
    return render(
        "class.html.j2", tables=shown, count=len(people), broken=broken, missing=missing or []
    )


def _people(people: list[HandIn]) -> pd.DataFrame:
    """A row for each participant, a column for each lesson that somebody has begun."""
    rows = {}
    for person in people:
        row, last = {}, "nowhere yet"
        for lesson, state in sorted(person["lessons"].items()):
            right = sum(verdict == RIGHT for verdict, _ in state["exercises"].values())
            row[lesson] = f"{state['run']:d}/{state['cells']:d}; {right} right"
            if state["run"]:
                last = f"{lesson} · {state['section']}"
        rows[person["name"]] = row | {"last section run": last, "handed in": person.get("when", "")}
    begun = sorted({lesson for person in people for lesson in person["lessons"]})
    table = pd.DataFrame.from_dict(rows, orient="index")
    return table[[*begun, "last section run", "handed in"]]


def exercise_results(people: list[HandIn]) -> pd.DataFrame:
    """A row for each exercise of each participant."""
    rows = [
        (person["name"], exercise, verdict, message)
        for person in people
        for state in person["lessons"].values()
        for exercise, (verdict, message) in state["exercises"].items()
    ]
    return pd.DataFrame(rows, columns=["name", "exercise", "verdict", "message"])


def all_guesses(people: list[HandIn]) -> pd.DataFrame:
    """A row for each question that a participant has guessed at."""
    rows = [
        (question, str(row["your guess"])[:40], row["off by"].strip())
        for person in people
        for state in person["lessons"].values()
        for question, row in state["guesses"].items()
        if row["off by"] != "-"
    ]
    return pd.DataFrame(rows, columns=["question", "guess", "off by"])


def stopping(results: pd.DataFrame) -> pd.DataFrame:
    """Each exercise: how many have it wrong, open and right; what stops most people first."""
    table = pd.crosstab(results["exercise"], results["verdict"])
    table = table.reindex(columns=[WRONG, OPEN, RIGHT], fill_value=0)
    messages = results[results["verdict"] == WRONG].groupby("exercise")["message"]
    table["most frequent message"] = messages.agg(_frequent, 1)
    return table.sort_values([WRONG, OPEN], ascending=False, kind="stable")


def wrong_guesses(guesses: pd.DataFrame) -> pd.DataFrame:
    """Each question: how many guessed, how many wrongly, and their guesses; the worst first.

    Wrong: another choice, or a number that is off by a factor of two or more.
    """
    off = guesses["off by"]
    wrong = guesses[off.eq("another answer") | off.str.contains(" times too ")]
    by_question = wrong.groupby("question")
    table = pd.DataFrame(
        {
            "guessed": guesses.groupby("question").size(),
            "wrong": by_question.size(),
            "too high": by_question["off by"].agg(lambda some: some.str.contains("high").sum()),
            "too low": by_question["off by"].agg(lambda some: some.str.contains("low").sum()),
            "frequent wrong guesses": by_question["guess"].agg(_frequent, 3),
        }
    )
    numbers_of = table.columns[:4]
    table[numbers_of] = table[numbers_of].fillna(0).astype(int)
    return table.sort_values("wrong", ascending=False, kind="stable")


def _frequent(texts: pd.Series, count: int) -> str:
    """The most frequent of some texts, with how often each is there."""
    common = texts.value_counts().head(count)
    return ", ".join(f"{text} ({often})" for text, often in common.items())
