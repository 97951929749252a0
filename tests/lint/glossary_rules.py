"""The glossary: every term in four languages and in its lesson, and one name for one thing."""

import re
from collections import Counter
from collections.abc import Iterator

from course_text import GLOSSARY, ROOT, Finding, blanked, cells, lessons, matches, read, table

LANGUAGES = {
    "Korean": re.compile("[\uac00-\ud7a3]"),
    "Japanese": re.compile("[\u3040-\u30ff\u4e00-\u9fff]"),
    "Chinese": re.compile("[\u4e00-\u9fff]"),
}
# What is not prose: code, addresses of links, and quotations of what others say.
NOT_PROSE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL)


def has_term(text: str, term: str) -> bool:
    """Whether a text has a term as the glossary writes it, or its plural, as a word of its own."""
    plural = f"{re.escape(term)}(s|es)?"
    return re.search(rf"(?<![A-Za-z0-9_]){plural}(?![A-Za-z0-9_])", text, re.I) is not None


def banned(glossary: str) -> dict[str, str]:
    """Spelling that the lessons do not use -> the one that they use."""
    rows = (row.cells for row in table(glossary, "| not |"))
    return {wrong.strip(): right for wrongs, right in rows for wrong in wrongs.split(",")}


def check_terms(glossary: str) -> Iterator[Finding]:
    """Rows: six cells, each language in its own letters, the term in the lesson it names."""
    rows, known = table(glossary, "| term |"), lessons()
    if not rows:
        yield Finding(GLOSSARY, 1, "no table of terms")
    scripts = [path for path in (ROOT / "scripts").rglob("*.py") if "__pycache__" not in path.parts]
    code = "\n".join(map(read, scripts))
    counts = Counter(row.cells[0] for row in rows)
    for line, row in rows:
        term = row[0]
        if len(row) != 6 or not all(row):
            yield Finding(GLOSSARY, line, f"{term}: a cell is missing or empty")
            continue
        if counts[term] > 1:
            yield Finding(GLOSSARY, line, f"{term} stands here {counts[term]} times")
        for (language, letters), translation in zip(LANGUAGES.items(), row[2:5], strict=True):
            if not letters.search(translation) and translation != term:  # a name stays as it is
                yield Finding(GLOSSARY, line, f"{term}: {translation!r} is not {language}")
        if row[5] not in known:
            yield Finding(GLOSSARY, line, f"{term}: there is no lesson {row[5]}")
        elif not has_term(read(known[row[5]]), term):
            yield Finding(GLOSSARY, line, f"lesson {row[5]} never says {term!r}")
        if "_" in term and not has_term(code, term):
            yield Finding(GLOSSARY, line, f"no script has the name {term}")


def check_spellings(path, text: str, instead: dict[str, str]) -> Iterator[Finding]:
    """Banned spellings in a lesson's prose, outside code and quotations."""
    for cell in cells(text):
        if cell.kind == "markdown":
            prose = blanked(NOT_PROSE, cell.text)
            for wrong, right in instead.items():
                word = re.compile(rf"(?<![A-Za-z_-]){re.escape(wrong)}(?![A-Za-z_-])", re.I)
                for line, _ in matches(word, prose, cell.line):
                    yield Finding(path, line, f"write {right}, not {wrong}")


def findings() -> Iterator[Finding]:
    glossary = read(GLOSSARY)
    yield from check_terms(glossary)
    instead = banned(glossary)
    if not instead:
        yield Finding(GLOSSARY, 1, "no table of spellings to avoid")
    for path in lessons().values():
        yield from check_spellings(path, read(path), instead)
