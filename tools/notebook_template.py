"""The scripts of the notebook instance, in its template. `python -m tools.sync` writes them there.

A template can hold no references to files, so the instance's scripts are copied into it: a block
whose first line is `- |  # NAME` is replaced by the text of that file.
"""

from __future__ import annotations

import re
from pathlib import Path

from workshop.paths import CLOUDFORMATION

TEMPLATE = CLOUDFORMATION / "notebook.yaml"
SCRIPTS = CLOUDFORMATION / "notebook"
BLOCK = re.compile(r"^(?P<indent> *)- \|  # (?P<name>\S+)\n(?:(?P=indent)  .*\n|\n)+", re.MULTILINE)


def pages() -> dict[Path, str]:
    """The template's place and the text it must have."""
    return {TEMPLATE: embedded(TEMPLATE.read_text(encoding="utf-8"))}


def embedded(template: str, scripts: Path = SCRIPTS) -> str:
    """The template's text with every named block as its file is now."""
    return BLOCK.sub(lambda block: _block(block["indent"], block["name"], scripts), template)


def _block(indent: str, name: str, scripts: Path) -> str:
    lines = (scripts / name).read_text(encoding="utf-8").splitlines()
    body = "\n".join(f"{indent}  {line}" if line else "" for line in lines)
    return f"{indent}- |  # {name}\n{body}\n"
