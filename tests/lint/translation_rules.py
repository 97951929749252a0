"""The site's translations are of texts that are still there."""

from __future__ import annotations

from collections.abc import Iterator

from course_text import Finding

from tools import translations


def findings() -> Iterator[Finding]:
    for one in translations.stale():
        message = f"stale, run `make translations`: {one.text[:60]!r}"
        yield Finding(one.catalog, one.line, message)
