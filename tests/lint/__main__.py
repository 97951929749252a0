"""Check the course's texts and names; print each finding as path:line: message.

python tests/lint              # what must be clean
python tests/lint PATH...      # these, though word_rules.PENDING may name them
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
    """What the rules find, in the order of the files."""
    if paths:
        folders = [Path(path).resolve() for path in paths]
        every = (finding for rules in RULES for finding in rules.findings())
        chosen = {*every, *word_rules.findings(pending=())}
        chosen = {line for line in chosen if any(map(line.path.is_relative_to, folders))}
    else:
        chosen = {finding for rules in RULES for finding in rules.findings()}
    return [str(finding) for finding in sorted(chosen)]


if __name__ == "__main__":
    lines = findings(sys.argv[1:])
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(1 if lines else 0)
