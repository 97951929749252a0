"""The scripts of the notebook instance, in its template.

    python -m tools.notebook_template    # after a change in cloudformation/notebook/

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


def embedded(template: str, scripts: Path = SCRIPTS) -> str:
    """The template's text with every named block as its file is now."""
    return BLOCK.sub(lambda block: _block(block["indent"], block["name"], scripts), template)


def _block(indent: str, name: str, scripts: Path) -> str:
    lines = (scripts / name).read_text(encoding="utf-8").splitlines()
    body = "\n".join(f"{indent}  {line}" if line else "" for line in lines)
    return f"{indent}- |  # {name}\n{body}\n"


def main() -> None:
    """Write the template anew."""
    TEMPLATE.write_text(embedded(TEMPLATE.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{TEMPLATE.name} holds the files of {SCRIPTS.name}/ as they are now.")


if __name__ == "__main__":
    main()
