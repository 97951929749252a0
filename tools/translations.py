"""`make translations`: the catalogs of the site's translated pages follow the English texts.

A page is translated where docs/site/locale/LANGUAGE/LC_MESSAGES has a catalog for it (gettext's
.po, one message for each paragraph, heading and cell of a table). The other pages have none, and
are English in every language; so is a message without a translation. To translate one more page:

    python -m tools.translations notebooks/01_data_parallelism

Babel merges the messages. What is gone is kept as a comment; what has changed is English
again, and listed, until it is translated.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from workshop.paths import ROOT

SITE = ROOT / "docs" / "site"
LOCALE = SITE / "locale"
LANGUAGES = {"en": "English", "ko": "한국어", "ja": "日本語", "zh_CN": "简体中文"}
CAPTION = re.compile(r"^:caption: (.+)$", re.MULTILINE)
CATALOGS = tuple(name for name in LANGUAGES if name != "en")


class Stale(NamedTuple):
    """A translation of a text that is no longer there. line: in the catalog."""

    catalog: Path
    line: int
    text: str


def pages(locale: Path = LOCALE) -> list[str]:
    """The pages with catalogs, by their names on the site, as "notebooks/00_setup"."""
    names = set()
    for language in CATALOGS:
        folder = locale / language / "LC_MESSAGES"
        names |= {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.po")}
    return sorted(names)


def source(page: str) -> Path:
    """Where a page's English text is. Raises FileNotFoundError for a page that is not there."""
    for path in (SITE / f"{page}.md", ROOT / f"{page}.md", ROOT / f"{page}.ipynb"):
        if path.exists():
            return path
    raise FileNotFoundError(f"There is no page {page}: neither .md nor .ipynb.")


def messages(path: Path) -> list[str]:
    """The texts of a page as the site translates them: paragraphs, headings, cells of tables."""
    from markdown_it import MarkdownIt

    if path.suffix == ".ipynb":
        import nbformat

        cells = nbformat.read(path, as_version=4).cells
        texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    else:
        texts = [path.read_text(encoding="utf-8")]
    parser = MarkdownIt("commonmark").enable("table")
    paragraphs: dict[str, None] = {}
    for text in texts:
        for token in parser.parse(text):
            if token.type == "fence" and "toctree" in token.info:
                paragraphs |= dict.fromkeys(CAPTION.findall(token.content))
            if token.type == "inline" and any(letter.isalpha() for letter in token.content):
                paragraphs[" ".join(token.content.split())] = None
    return list(paragraphs)


def stale(locale: Path = LOCALE) -> Iterator[Stale]:
    """The translations whose English text has changed or is gone."""
    from babel.messages import pofile

    for page in pages(locale):
        now = set(messages(source(page)))
        for language in CATALOGS:
            catalog = locale / language / "LC_MESSAGES" / f"{page}.po"
            if not catalog.exists():
                continue
            with catalog.open("rb") as file:
                for message in pofile.read_po(file, locale=language):
                    text = " ".join(str(message.id).split())
                    if text and (message.fuzzy or (message.string and text not in now)):
                        yield Stale(catalog, message.lineno or 1, text)


def update(names: list[str]) -> list[str]:
    """Bring the catalogs of these pages up to date; return what has no translation yet, by line."""
    from babel.messages.catalog import Catalog
    from babel.messages.pofile import read_po, write_po

    new = []
    for page, language in product(names, CATALOGS):
        template = Catalog(project="Data-parallel training", charset="utf-8")
        for text in messages(source(page)):
            template.add(text)
        path = LOCALE / language / "LC_MESSAGES" / f"{page}.po"
        catalog = Catalog(locale=language, charset="utf-8")
        if path.exists():
            with path.open("rb") as file:
                catalog = read_po(file, locale=language)
        known = {message.id for message in catalog}
        catalog.update(template, no_fuzzy_matching=True)
        added = [message.id for message in catalog if message.id not in known]
        new += [f"{path.relative_to(SITE.parent)}: translate: {text}" for text in added]
        if added or known - {message.id for message in catalog}:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                write_po(file, catalog, width=0)
    return new


if __name__ == "__main__":
    print(*update(sorted({*pages(), *sys.argv[1:]})), sep="\n")
