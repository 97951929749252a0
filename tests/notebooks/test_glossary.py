"""The glossary: every term is used as it stands there, in every language, and no other spelling."""

import re

import pytest
from markdown_tables import LESSONS, TO_COME, prose, table

from workshop.paths import NOTEBOOKS, SCRIPTS

TEXT = (NOTEBOOKS / "glossary.md").read_text(encoding="utf-8")
LANGUAGES = {
    "한국어": re.compile("[\uac00-\ud7a3]"),
    "日本語": re.compile("[\u3040-\u30ff\u4e00-\u9fff]"),
    "中文": re.compile("[\u4e00-\u9fff]"),
}
# What is not prose: code, addresses of links, and quotations of what others say.
NOT_PROSE = re.compile(r"```.*?```|`[^`]*`|\]\([^)]*\)|\"[^\"\n]*\"|“[^”\n]*”", re.DOTALL)


TERMS = table(TEXT, "| term |")
BANNED = {
    wrong.strip(): right for wrongs, right in table(TEXT, "| not |") for wrong in wrongs.split(",")
}
row = pytest.mark.parametrize("cells", TERMS, ids=lambda cells: cells[0])


def used_in(text: str, term: str) -> bool:
    """Whether a text has a term as it is written, or its plural, as a word of its own."""
    plural = f"{re.escape(term)}(s|es)?"
    return re.search(rf"(?<![A-Za-z0-9_]){plural}(?![A-Za-z0-9_])", text, re.I) is not None


def variants(text: str) -> list[str]:
    """The banned spellings in a text, outside code and quotations."""
    plain = NOT_PROSE.sub(" ", text)
    return [
        wrong
        for wrong in BANNED
        if re.search(rf"(?<![A-Za-z_-]){re.escape(wrong)}(?![A-Za-z_-])", plain, re.I)
    ]


def test_there_are_terms_and_banned_spellings():
    assert len(TERMS) >= 60 and len(BANNED) >= 15
    assert len({cells[0] for cells in TERMS}) == len(TERMS), "a term stands there twice"


@row
def test_no_cell_is_empty(cells):
    assert len(cells) == 6 and all(cells), cells


@row
def test_each_language_is_that_language(cells):
    for (language, letters), said in zip(LANGUAGES.items(), cells[2:5], strict=True):
        # A name stays as it is: mpirun, SMDDP.
        assert letters.search(said) or said == cells[0], f"{language}: {said}"


@row
def test_a_term_is_used_in_its_lesson_as_it_is_written(cells):
    term, lesson = cells[0], cells[-1]
    if lesson in LESSONS:
        text = LESSONS[lesson].read_text(encoding="utf-8")
        assert used_in(text, term), f"lesson {lesson} never says {term!r}"
    else:
        assert lesson in TO_COME, f"there is no lesson {lesson}"


@pytest.mark.parametrize("name", [cells[0] for cells in TERMS if "_" in cells[0]])
def test_names_of_code_are_names_in_the_scripts(name):
    texts = [path.read_text(encoding="utf-8") for path in SCRIPTS.rglob("*.py")]
    assert any(used_in(text, name) for text in texts)


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_has_one_name_for_one_thing(lesson):
    found = variants(prose(lesson))
    assert not found, "\n".join(f"write {BANNED[one]}, not {one}" for one in found)


def test_a_banned_spelling_is_seen_and_code_and_quotations_are_not():
    assert variants("An allreduce over two Nodes.") == ["allreduce", "nodes"]
    assert variants("`allreduce`, `--nodes 2`, and “per node” [a](b/node.html)") == []
    assert variants('people say "world size"') == [] and variants("the world size") != []
    assert variants("all-reduce on an instance with world_size 4") == []


def test_a_term_is_found_only_as_a_word():
    assert used_in("All ranks.", "rank") and used_in("local_rank = 0", "local_rank")
    assert not used_in("local_rank", "rank") and not used_in("earring", "ring")
