"""The site's translations are of texts that are still there."""

from __future__ import annotations

from collections.abc import Iterator

from course_text import Finding

from tools import translations


def findings() -> Iterator[Finding]:
    for stale in translations.stale():
        message = f"stale, run `make translations`: {stale.text[:60]!r}"
        yield Finding(stale.catalog, stale.line, message)
