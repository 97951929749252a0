"""Check the course's texts and names; print each finding as path:line: message.

python tests/lint              # all
python tests/lint PATH...      # these
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # the kit, where it is not installed

import glossary_rules
import instructor_rules
import lesson_rules
import word_rules

RULES = (lesson_rules, glossary_rules, instructor_rules, word_rules)


def findings(paths: list[str]) -> list[str]:
    """What the rules find below these paths, in the order of the files."""
    folders = [Path(path).resolve() for path in paths]
    every = {finding for rules in RULES for finding in rules.findings()}
    return [str(line) for line in sorted(every) if any(map(line.path.is_relative_to, folders))]


if __name__ == "__main__":
    lines = findings(sys.argv[1:] or ["/"])
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(1 if lines else 0)
