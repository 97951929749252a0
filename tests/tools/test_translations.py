"""The site's catalogs: what is translated, and what no longer fits the English text."""

from __future__ import annotations

import shutil

import pytest
from babel.messages import pofile

from tools import translations
from tools.site import TEXTS


def catalog(page, language, locale=translations.LOCALE):
    with (locale / language / "LC_MESSAGES" / f"{page}.po").open("rb") as file:
        return pofile.read_po(file, locale=language)


def test_messages_are_paragraphs_headings_cells_and_captions(tmp_path):
    page = tmp_path / "x.md"
    page.write_text(
        "# A title\n\nTwo lines\nof *one* [paragraph](x.md).\n\n- an item\n\n| a | 1 |\n|---|---|\n"
        "| cell | 2 |\n\n```python\ncode = 1\n```\n\n```{toctree}\n:caption: Pages\n\nx\n```\n"
    )
    assert translations.messages(page) == [
        "A title",
        "Two lines of *one* [paragraph](x.md).",
        "an item",
        "a",
        "cell",
        "Pages",
    ]


def test_the_start_page_the_first_lesson_and_the_glossary_are_translated():
    assert {"index", "notebooks/glossary"} <= set(translations.pages())
    for page in translations.pages():
        for language in translations.CATALOGS:
            messages = [message for message in catalog(page, language) if message.id]
            done = [message for message in messages if message.string]
            share = len(done) / len(messages)
            # The glossary's terms are in four languages by themselves.
            assert share > (0.2 if "glossary" in page else 0.8), (page, language, share)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """A copy of the site's texts, to change."""
    site = tmp_path / "site"
    shutil.copytree(TEXTS, site)
    monkeypatch.setattr(translations, "SITE", site)
    monkeypatch.setattr(translations, "LOCALE", site / "locale")
    return site


def test_a_changed_text_is_stale_until_it_is_translated_again(copied):
    locale, page = copied / "locale", copied / "index.md"
    page.write_text(page.read_text().replace("Where to begin", "Where to begin today"))
    stale = list(translations.stale(locale))
    assert [text.text for text in stale] == ["Where to begin"] * len(translations.CATALOGS)
    assert {text.catalog.name for text in stale} == {"index.po"} and stale[0].line > 10
    lost = translations.update(["index"])
    assert [line.rsplit(": ", 1)[1] for line in lost] == ["Where to begin today"] * 3
    assert list(translations.stale(locale)) == []
    for language in translations.CATALOGS:
        assert not catalog("index", language, locale).get("Where to begin today").string
        assert catalog("index", language, locale).get("To teach").string, "the others stay"
