"""A class on one page: who is where, which exercise stops people, which guesses were wrong.

`hand_in` reads what a participant's own notebooks hold, as JupyterLab saved them; nothing is
recorded besides. `report` makes one page of many such files. The quizzes are not in them: a click
on a choice is answered by the page itself and leaves no trace.
"""

from __future__ import annotations

import datetime
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat

from workshop.course import render
from workshop.course.lessons import lessons, number
from workshop.lesson.check import numbers
from workshop.lesson.results import read_results
from workshop.paths import NOTEBOOKS

FORMAT = 1
MAX_BYTES = 5_000_000  # bytes; a hand-in has some thousands
RIGHT, WRONG, OPEN = "right", "wrong", "open"
# To the next exercise's: a message may have several lines.
SAID = re.compile(
    r"(?:^|\n|: )(\d\d\.[1-9])(: right\.|: | is not answered)((?:(?!\n\d\d\.[1-9]).)*)", re.DOTALL
)
MAX_MESSAGE = 300  # characters of a message in a hand-in


class Unreadable(ValueError):
    """A file that is no hand-in; the message says why."""


@dataclass(frozen=True)
class HandIn:
    """One participant's file. lessons: number -> what `lesson_state` returns; when: it was made."""

    name: str
    lessons: dict[str, dict[str, Any]]
    when: str = ""


def hand_in(name: str, notebooks: Path = NOTEBOOKS) -> dict[str, Any]:
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
    """A hand-in's content. Raises Unreadable."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise Unreadable("larger than any hand-in")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(str(error).splitlines()[0]) from None
    if not isinstance(content, dict) or "format" not in content:
        raise Unreadable("not a hand-in: `workshop class hand-in` writes one")
    if content["format"] != FORMAT:
        raise Unreadable(f"of format {content['format']!r}; this kit reads format {FORMAT}")
    name, states = content.get("name"), content.get("lessons")
    if not (isinstance(name, str) and name.strip() and isinstance(states, dict)):
        raise Unreadable("without a name or its lessons")
    for lesson, state in states.items():
        if not _is_state(state):
            raise Unreadable(f"lesson {lesson[:10]!r} is not as `workshop class hand-in` writes it")
    return HandIn(name.strip()[:60], states, str(content.get("when", ""))[:30])


def _is_state(state: object) -> bool:
    return (
        isinstance(state, dict)
        and all(type(state.get(entry)) is int and state[entry] >= 0 for entry in ("run", "cells"))
        and isinstance(state.get("section"), str)
        and isinstance(state.get("exercises"), dict)
        and all(
            isinstance(entry, list)
            and len(entry) == 2
            and all(isinstance(part, str) for part in entry)
            for entry in state["exercises"].values()
        )
        and isinstance(state.get("guesses"), dict)
        and all(
            isinstance(row, dict) and isinstance(row.get("off by"), str)
            for row in state["guesses"].values()
        )
    )


def read_all(paths: list[Path]) -> tuple[list[HandIn], list[str]]:
    """The hand-ins, and a line for each file that is none. Equal names get their file's."""
    hand_ins, broken = [], []
    for path in paths:
        try:
            hand_ins.append((path, read(path)))
        except Unreadable as error:
            broken.append(f"{path.name}: {error}")
    often = Counter(person.name for _, person in hand_ins)
    named = [
        replace(person, name=f"{person.name} ({path.name})") if often[person.name] > 1 else person
        for path, person in hand_ins
    ]
    return sorted(named, key=lambda person: person.name.casefold()), broken


def not_handed_in(people: list[HandIn], roster: list[str]) -> list[str]:
    """The roster's names that no hand-in bears; case and spaces do not matter.

    Equal names are followed by their file's, see read_all.
    """
    there = [f"{_plain(person.name)} (" for person in people]
    return [name for name in roster if not any(n.startswith(f"{_plain(name)} (") for n in there)]


def _plain(name: str) -> str:
    return " ".join(name.split()).casefold()


def page(people: list[HandIn], broken: list[str], missing: list[str] | None = None) -> str:
    """The report as HTML; whatever the files hold is escaped. missing: names of a roster."""
    results = {person.name: results_of(person) for person in people}
    return render(
        "class.html.j2",
        people=people,
        broken=broken,
        missing=missing or [],
        results=results,
        checked=sorted({exercise for states in results.values() for exercise in states}),
        lessons=sorted({lesson for person in people for lesson in person.lessons}),
        where={person.name: where(person) for person in people},
        exercises=stopping(people),
        guesses=wrong_guesses(people),
    )


def results_of(person: HandIn) -> dict[str, list[str]]:
    """A participant's exercises: number -> [state, message]."""
    return {k: v for lesson in person.lessons.values() for k, v in lesson["exercises"].items()}


def where(person: HandIn) -> str:
    """The last section that was run, of the last lesson; "nowhere yet" without any."""
    begun = [lesson for lesson, state in sorted(person.lessons.items()) if state["run"]]
    return f"{begun[-1]} · {person.lessons[begun[-1]]['section']}" if begun else "nowhere yet"


def stopping(people: list[HandIn]) -> list[dict[str, Any]]:
    """Each exercise: how many have it right, wrong and open; what stops most people first.

    Open counts only for those who have run the exercise's lesson, or another of its exercises.
    """
    counts: dict[str, Counter] = defaultdict(Counter)
    messages: dict[str, Counter] = defaultdict(Counter)
    for state in (state for person in people for state in person.lessons.values()):
        for exercise, (verdict, message) in state["exercises"].items():
            counts[exercise][verdict] += 1
            if verdict == WRONG:
                messages[exercise][message] += 1
    rows = [
        {
            "exercise": exercise,
            **{verdict: count[verdict] for verdict in (RIGHT, WRONG, OPEN)},
            "message": messages[exercise].most_common(1)[0][0] if messages[exercise] else "",
        }
        for exercise, count in counts.items()
    ]
    return sorted(rows, key=lambda row: (-row[WRONG], -row[OPEN], row["exercise"]))


def wrong_guesses(people: list[HandIn]) -> list[dict[str, Any]]:
    """Each question: how many guessed, how many wrongly, and their guesses; the worst first.

    Wrong: another choice, or a number that is off by a factor of two or more.
    """
    by_question: dict[str, list[dict]] = defaultdict(list)
    for state in (state for person in people for state in person.lessons.values()):
        for question, row in state["guesses"].items():
            if row["off by"] != "-":
                by_question[question].append(row)
    rows = []
    for question, guessed in by_question.items():
        wrong = [guess for guess in guessed if is_wrong(guess["off by"])]
        common = Counter(str(guess.get("your guess", ""))[:40] for guess in wrong).most_common(3)
        rows.append(
            {
                "question": question,
                "guessed": len(guessed),
                "wrong": len(wrong),
                "common": ", ".join(f"{guess} ({count})" for guess, count in common),
                "high": sum("too high" in guess["off by"] for guess in wrong),
                "low": sum("too low" in guess["off by"] for guess in wrong),
            }
        )
    return sorted(rows, key=lambda row: (-row["wrong"] / row["guessed"], row["question"]))


def is_wrong(off_by: str) -> bool:
    """Whether a guess counts as wrong, by the words in which `compare` said how far off it was."""
    return off_by == "another answer" or (" times too " in off_by)
