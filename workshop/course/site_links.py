"""Links of the built site that lead nowhere: pages, files, pictures, places in a page.

Sphinx checks what it writes itself. This reads the finished pages, so it also sees the links in
outputs of cells and in templates.

    python -m workshop.course.site_links        # of build/site
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from workshop.paths import BUILD

SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
LINK = re.compile(r'\b(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]+)"')


class _Page:
    """A page's links, and the places in it that one can link to."""

    def __init__(self, text: str) -> None:
        text = SCRIPT.sub("", text)
        self.links = [html.unescape(link) for link in LINK.findall(text)]
        self.places = {"", "top", *map(html.unescape, PLACE.findall(text))}


def broken(site: Path) -> Iterator[str]:
    """Yield "page: link" for each link within the site that leads nowhere; others are not read.

    A link to a folder leads nowhere, too: in a folder that is opened in a browser it shows a list.
    """
    root = site.resolve()
    known = {
        page: _Page(page.read_text(encoding="utf-8"))
        for page in sorted(root.rglob("*.html"))
        if "_static" not in page.parts and "_downloads" not in page.parts
    }
    for page, found in known.items():
        for link in dict.fromkeys(found.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            missing = not path.is_file() or not path.is_relative_to(root)
            if missing or (path in known and place not in known[path].places):
                yield f"{page.relative_to(root)}: {link}"


if __name__ == "__main__":
    wrong = list(broken(BUILD / "site"))
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
