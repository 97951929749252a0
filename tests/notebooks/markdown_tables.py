"""What the tests of the instructor's pages share: tables of Markdown, sections of lessons."""

import jupytext

from workshop.course.lessons import lessons, number

TO_COME: set[str] = set()  # lessons that the course has only in its syllabus
LESSONS = {number(path): path.with_suffix(".py") for path in lessons()}


def table(text: str, header: str) -> list[list[str]]:
    """The rows of the tables whose first line begins with `header`, a list of cells each."""
    found, inside = [], False
    for line in text.splitlines():
        if not line.startswith("|"):
            inside = False
        elif line.startswith(header):
            inside = True
        elif inside and set(line) - set("|-"):
            found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def sections(lesson: str) -> dict[str, str]:
    """Second-level heading -> all that stands in that section of a lesson, prose and code."""
    found, heading = {}, None
    for cell in jupytext.read(LESSONS[lesson]).cells:
        for line in cell.source.splitlines():
            if cell.cell_type == "markdown" and line.startswith("## "):
                heading = line.removeprefix("## ")
                found[heading] = ""
            elif heading is not None:
                found[heading] += line.removeprefix("> ") + "\n"  # a quotation goes on
    return found


def prose(lesson: str) -> str:
    """All the Markdown of a lesson."""
    cells = jupytext.read(LESSONS[lesson]).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
