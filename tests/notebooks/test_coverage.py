"""Every numbered claim of the source documents has its place: a section that says it, or a lesson.

The numbers are those of the documents' own list; some numbers were never given.
"""

import pytest
from markdown_tables import LESSONS, TO_COME, sections, table

from workshop.paths import NOTEBOOKS

TEXT = (NOTEBOOKS / "instructor" / "coverage.md").read_text(encoding="utf-8")
NOT_GIVEN = {21, 22, 30, 61, 80, 81, 85}
NUMBERS = set(range(1, 101)) - NOT_GIVEN
# The claims that are wrong where they stand, and corrected here.
WRONG = {1, 2, 4, 5, 7, 8, 9, 11, 12, 24, 25, 26, 27, 29, 36, 37, 39, 41, 49, 51, 52, 53, 54, 55}
WRONG |= {60, 69, 72, 74, 76, 77, 78, 79, 86, 88, 92, 94, 95, 96, 97, 98}
ROWS = table(TEXT, "| row |")
ALSO = table(TEXT, "| also |")
row = pytest.mark.parametrize("cells", ROWS, ids=lambda cells: f"row {cells[0]}")


def mistake(lesson: str, section: str, says: str) -> str | None:
    """What is wrong with a place; None if nothing is."""
    if lesson.endswith(", to come"):
        if lesson.removesuffix(", to come") not in TO_COME:
            return f"{lesson}: only {', '.join(sorted(TO_COME))} may be to come"
        return "a lesson to come has no sections yet" if section or says else None
    if lesson not in LESSONS:
        return f"there is no lesson {lesson}"
    if section not in (found := sections(lesson)):
        return f"lesson {lesson} has no section {section!r}; it has: {', '.join(found)}"
    if not says:
        return "no word to look for"
    if says.strip("`").casefold() not in " ".join(found[section].split()).casefold():
        return f"section {section!r} of lesson {lesson} never says {says!r}"
    return None


def test_every_number_has_a_row_and_only_one():
    numbers = [int(cells[0]) for cells in ROWS]
    assert set(numbers) == NUMBERS, f"differs in {sorted(set(numbers) ^ NUMBERS)}"
    assert numbers == sorted(numbers) and len(numbers) == len(set(numbers))


def test_the_wrong_claims_are_marked():
    assert {int(cells[0]) for cells in ROWS if cells[1] == "✗"} == WRONG
    assert {cells[1] for cells in ROWS} == {"✗", ""}


@row
def test_a_place_is_a_section_that_says_it_or_a_lesson_to_come(cells):
    assert len(cells) == 6 and cells[2]
    assert mistake(*cells[3:]) is None, mistake(*cells[3:])


@pytest.mark.parametrize("cells", ALSO, ids=lambda cells: cells[0])
def test_what_the_older_workshop_did_has_a_place(cells):
    assert len(cells) == 4 and len(ALSO) == 6
    assert mistake(*cells[1:]) is None, mistake(*cells[1:])


@pytest.mark.parametrize(
    "place, reason",
    [
        (("05, to come", "", ""), "may be to come"),
        (("42", "Set up", "target"), "no lesson 42"),
        (("00", "No such section", "target"), "has no section"),
        (("00", "Set up", ""), "no word"),
        (("00", "Set up", "xylophone"), "never says"),
    ],
)
def test_a_wrong_place_is_noticed(place, reason):
    assert reason in mistake(*place)
    assert mistake("00", "Set up", "target") is None
