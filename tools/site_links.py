"""Links of the built site that lead nowhere: pages, files, pictures, places in a page.

Sphinx checks what it writes itself. This reads the finished pages, so it also sees the links in
outputs of cells and in templates.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

SCRIPT = re.compile(r"<script\b.*?</script>", re.DOTALL)
LINK = re.compile(r'\b(?:href|src)="([^"]+)"')
PLACE = re.compile(r'\b(?:id|name)="([^"]+)"')


def broken(site: Path) -> Iterator[str]:
    """Yield "page: link" for each link within the site that leads nowhere; others are not read.

    A link to a folder leads nowhere, too: in a folder that is opened in a browser it shows a list.
    """
    root = site.resolve()
    texts = {
        page: SCRIPT.sub("", page.read_text(encoding="utf-8"))
        for page in sorted(root.rglob("*.html"))
        if "_static" not in page.parts and "_downloads" not in page.parts
    }
    places = {page: {"", "top", *_matches(PLACE, text)} for page, text in texts.items()}
    for page, text in texts.items():
        for link in _matches(LINK, text):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            missing = not path.is_file() or not path.is_relative_to(root)
            if missing or (path in places and place not in places[path]):
                yield f"{page.relative_to(root)}: {link}"


def _matches(pattern: re.Pattern, text: str) -> dict[str, None]:
    return dict.fromkeys(map(html.unescape, pattern.findall(text)))
